-- The operator writes a view as a whole, so it is never in progress. That workloads wait for room is no fault of it.
local health = { status = "Healthy", message = "" }
if obj.status ~= nil and obj.status.conditions ~= nil then
  for _, condition in ipairs(obj.status.conditions) do
    if condition.type == "Blocked" and condition.status == "True" then
      health.message = condition.message
    end
  end
end
return health
