local health = { status = "Progressing", message = "the operator has not seen the quota yet" }
local status = obj.status
if status == nil or status.conditions == nil then
  return health
end
-- Whatever the status says, it says of another spec.
if status.observedGeneration ~= obj.metadata.generation then
  health.message = "the operator has not seen the present spec yet"
  return health
end

local conditions = {}
for _, condition in ipairs(status.conditions) do
  conditions[condition.type] = condition
end

local stalled = conditions["Stalled"]
if stalled ~= nil and stalled.status == "True" then
  health.status = "Degraded"
  health.message = stalled.message
  return health
end

-- Argo CD has no time limit for what is in progress, so it is told of what somebody must mend.
local reconciling = conditions["Reconciling"]
if reconciling ~= nil and reconciling.status == "True" then
  if reconciling.reason == "ProgressingWithRetry" then
    health.status = "Degraded"
  end
  health.message = reconciling.message
  return health
end

-- An older operator says neither of these two.
for _, kind in ipairs({ "Ready", "Enforced" }) do
  local condition = conditions[kind]
  if condition == nil then
    health.message = "the condition " .. kind .. " is not there yet"
    return health
  end
  if condition.status ~= "True" then
    health.message = condition.message
    return health
  end
end

-- A quota that is exceeded does what it should.
health.status = "Healthy"
health.message = conditions["Enforced"].message
local exceeded = conditions["Exceeded"]
if exceeded ~= nil and exceeded.status == "True" then
  health.message = exceeded.message
end
return health
