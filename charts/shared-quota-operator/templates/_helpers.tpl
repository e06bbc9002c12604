{{/* The objects of files/manifests.yaml, as one map: KIND/NAME -> object. */}}
{{- define "shared-quota.objects" -}}
{{- $objects := dict }}
{{- range splitList "\n---\n" (.Files.Get "files/manifests.yaml" | replace "shared-quota-system" .Release.Namespace) }}
{{- $object := fromYaml . }}
{{- $_ := set $objects (printf "%s/%s" $object.kind $object.metadata.name) $object }}
{{- end }}
{{- toYaml $objects }}
{{- end }}

{{/* What of files/manifests.yaml isn't rendered as it is, KIND/NAME -> true if it is left out. */}}
{{- define "shared-quota.leftOut" -}}
{{- /* Helm's release is stored there, so it is there before the release. */ -}}
Namespace/{{ .Release.Namespace }}: true
{{- /* deployment.yaml */}}
Deployment/shared-quota-manager: true
{{- range list "clusterresourcequotas" "localresourcequotas" "quotaledgers" }}
CustomResourceDefinition/{{ . }}.quota.sharedquota.dev: {{ not $.Values.crds.install }}
{{- end }}
{{- with .Values.rights }}
ClusterRole/shared-quota-wake-role: {{ not .wake }}
ClusterRoleBinding/shared-quota-wake-rolebinding: {{ not .wake }}
ClusterRole/shared-quota-reader-all-role: {{ not .readAll }}
ClusterRoleBinding/shared-quota-reader-all-rolebinding: {{ not .readAll }}
{{- end }}
{{- with .Values.roles }}
ClusterRole/project-owner: {{ not .projectOwner }}
ClusterRole/project-owner-subdivision: {{ not .projectOwner }}
{{- end }}
{{- range $name := list "protection" "subdivision" "wake" }}
ValidatingAdmissionPolicy/shared-quota-{{ $name }}: {{ not (get $.Values.policies $name) }}
ValidatingAdmissionPolicyBinding/shared-quota-{{ $name }}: {{ not (get $.Values.policies $name) }}
{{- end }}
NetworkPolicy/shared-quota-manager: {{ not .Values.networkPolicy.enabled }}
{{- with .Values.monitoring }}
ServiceMonitor/shared-quota-metrics: {{ not .serviceMonitor }}
PrometheusRule/shared-quota-alerts: {{ not .alerts }}
ConfigMap/shared-quota-dashboard: {{ not .dashboard }}
{{- end }}
{{- end }}

{{/* The arguments that values add to those of config/manager, as a list. */}}
{{- define "shared-quota.arguments" -}}
{{- $arguments := list }}
{{- if not .Values.rights.wake }}
{{- $arguments = append $arguments "--wake-owners=false" }}
{{- end }}
{{- if .Values.certificates.secretName }}
{{- $arguments = append $arguments "--cert-dir=/etc/webhook-cert" }}
{{- end }}
{{- with .Values.protectedNamespaces }}
{{- if hasKey $.Values.flags "protected-namespaces" }}
{{- fail "protectedNamespaces and flags.protected-namespaces are both set: the flag says all namespaces to protect, so name them all there, or remove it" }}
{{- end }}
{{- $arguments = append $arguments (printf "--protected-namespaces=%s" (concat (list "kube-system" "kube-public" "kube-node-lease") . | uniq | join ",")) }}
{{- end }}
{{- range $name, $value := .Values.flags }}
{{- if has $name (list "limited-resources" "client-ca-file" "metrics-cert-dir") }}
{{- $mounted := false }}
{{- range $.Values.volumeMounts }}
{{- $mounted = or $mounted (hasPrefix (printf "%s/" (trimSuffix "/" .mountPath)) (printf "%s/" $value)) }}
{{- end }}
{{- if not $mounted }}
{{- fail (printf "flags.%s: no entry of volumeMounts has %s; mount the file by volumes and volumeMounts" $name $value) }}
{{- end }}
{{- end }}
{{- $arguments = append $arguments (printf "--%s=%s" $name (kindIs "string" $value | ternary $value (toJson $value))) }}
{{- end }}
{{- toYaml $arguments }}
{{- end }}
