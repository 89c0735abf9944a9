{{/*
The objects are those of the kustomize base: templates read its files (files/base and files/components are links), put
the values into the objects, and write them. So an object is described once, and the chart cannot fall behind.
docs/adr/0161 says why.
*/}}

{{/* The objects of a file, as JSON {"items": [...]}. Arguments: root, file. */}}
{{- define "vgpushare.read" -}}
{{- $accounts := .root.Values.serviceAccounts -}}
{{- $text := required (printf "%s is not in the chart" .file) (.root.Files.Get (printf "files/%s" .file)) -}}
{{- $text = $text | replace "vgpu-system" .root.Release.Namespace -}}
{{- range $part, $account := $accounts -}}
{{- $text = $text | replace (printf "serviceaccount:%s:vgpu-%s'" $.root.Release.Namespace $part) (printf "serviceaccount:%s:%s'" $.root.Release.Namespace $account.name) -}}
{{- end -}}
{{- $items := list -}}
{{- range splitList "\n---\n" $text -}}
{{- $items = append $items (fromYaml .) -}}
{{- end -}}
{{- dict "items" $items | toJson -}}
{{- end -}}

{{/* Writes an object, with the labels of all objects and the names of accounts. Arguments: root, object. */}}
{{- define "vgpushare.write" -}}
{{- $object := .object -}}
{{- $version := include "vgpushare.version" .root -}}
{{- $labels := dict "app.kubernetes.io/part-of" "vgpushare" "app.kubernetes.io/version" $version -}}
{{- $_ := set $object.metadata "labels" (merge (dict) $labels ($object.metadata.labels | default dict) .root.Values.labels) -}}
{{- range $part, $account := .root.Values.serviceAccounts -}}
{{- range $object.subjects -}}
{{- if and (eq .kind "ServiceAccount") (eq .name (printf "vgpu-%s" $part)) -}}{{- $_ := set . "name" $account.name -}}{{- end -}}
{{- end -}}
{{- end -}}
---
{{ toYaml $object }}
{{ end -}}

{{/* Writes the objects of a file as they are. Arguments: root, file. */}}
{{- define "vgpushare.copy" -}}
{{- $root := .root -}}
{{- range (include "vgpushare.read" . | fromJson).items }}
{{ include "vgpushare.write" (dict "root" $root "object" .) }}
{{- end -}}
{{- end -}}

{{- define "vgpushare.version" -}}
{{- .Values.image.tag | default .Chart.AppVersion -}}
{{- end -}}

{{/*
The schedulerName of GPU pods. Only the scheduler that asks the extender may have it: with another name pods would wait
without an Event, so what cannot work is refused.
*/}}
{{- define "vgpushare.schedulerName" -}}
{{- $isSecond := eq .Values.scheduler.mode "second" -}}
{{- $name := .Values.scheduler.name | default (ternary "vgpu-scheduler" "default-scheduler" $isSecond) -}}
{{- if and (not $isSecond) (eq $name "vgpu-scheduler") -}}
{{- fail "scheduler.name: with scheduler.mode cluster nothing runs under the name vgpu-scheduler: leave scheduler.name out (default-scheduler), or name a scheduler of the cluster" -}}
{{- end -}}
{{- if and $isSecond (eq $name "default-scheduler") -}}
{{- fail "scheduler.name: the second kube-scheduler needs a name of its own, and default-scheduler is the cluster's: leave scheduler.name out (vgpu-scheduler), or set scheduler.mode to cluster" -}}
{{- end -}}
{{- $name -}}
{{- end -}}

{{/* The image of a part. Arguments: root, part. */}}
{{- define "vgpushare.image" -}}
{{- $image := .root.Values.image -}}
{{- $name := printf "vgpushare-%s" .part -}}
{{- if $image.registry -}}{{- $name = printf "%s/%s" (trimSuffix "/" $image.registry) $name -}}{{- end -}}
{{- $digest := get $image.digests .part -}}
{{- if $digest -}}{{ $name }}@{{ $digest }}{{- else -}}{{ $name }}:{{ include "vgpushare.version" .root }}{{- end -}}
{{- end -}}

{{/* Puts the values of a part into the pods of a workload. Arguments: root, workload, values, account (none: without one). Returns nothing. */}}
{{- define "vgpushare.pods" -}}
{{- $root := .root -}}{{- $values := .values -}}
{{- $template := .workload.spec.template -}}{{- $pod := $template.spec -}}
{{- $own := $template.metadata.labels -}}
{{- $_ := set $template.metadata "labels" (merge (dict) $own $root.Values.podLabels) -}}
{{- $annotations := merge (dict) $values.podAnnotations ($template.metadata.annotations | default dict) -}}
{{- if $annotations -}}{{- $_ := set $template.metadata "annotations" $annotations -}}{{- end -}}
{{- if .account -}}{{- $_ := set $pod "serviceAccountName" .account.name -}}{{- end -}}
{{- $_ := set $pod "priorityClassName" $values.priorityClassName -}}
{{- if $values.nodeSelector -}}{{- $_ := set $pod "nodeSelector" $values.nodeSelector -}}{{- else -}}{{- $_ := unset $pod "nodeSelector" -}}{{- end -}}
{{- if $values.tolerations -}}{{- $_ := set $pod "tolerations" $values.tolerations -}}{{- else -}}{{- $_ := unset $pod "tolerations" -}}{{- end -}}
{{- if $values.affinity -}}{{- $_ := set $pod "affinity" $values.affinity -}}{{- end -}}
{{- if $root.Values.pullSecrets -}}
{{- $secrets := list -}}
{{- range $root.Values.pullSecrets -}}{{- $secrets = append $secrets (dict "name" .) -}}{{- end -}}
{{- $_ := set $pod "imagePullSecrets" $secrets -}}
{{- end -}}
{{- if $values.topologySpreadConstraints -}}
{{- $spread := list -}}
{{- range $values.topologySpreadConstraints -}}
{{- $spread = append $spread (merge (dict) . (dict "labelSelector" (dict "matchLabels" $own))) -}}
{{- end -}}
{{- $_ := set $pod "topologySpreadConstraints" $spread -}}
{{- end -}}
{{- end -}}

{{/* Puts the values of a part into its container. Arguments: root, container, part, values, args, hasNoNamespace. Returns nothing. */}}
{{- define "vgpushare.container" -}}
{{- $_ := set .container "image" (include "vgpushare.image" .) -}}
{{- if .root.Values.image.pullPolicy -}}{{- $_ := set .container "imagePullPolicy" .root.Values.image.pullPolicy -}}{{- end -}}
{{- $_ := set .container "resources" .values.resources -}}
{{- $args := concat (.container.args | default list) (.args | default list) .values.extraArgs -}}
{{- if and (ne .root.Release.Namespace "vgpu-system") (not .hasNoNamespace) -}}{{- $args = append $args (printf "--namespace=%s" .root.Release.Namespace) -}}{{- end -}}
{{- if $args -}}{{- $_ := set .container "args" $args -}}{{- end -}}
{{- if .values.env -}}{{- $_ := set .container "env" (concat (.container.env | default list) .values.env) -}}{{- end -}}
{{- end -}}

{{/*
Puts a part's extraVolumes into its pod, in place of those with the same name, and its extraVolumeMounts into its container.
The container's user may write them (fsGroup). Arguments: pod, container, values. Returns nothing.
*/}}
{{- define "vgpushare.volumes" -}}
{{- $extra := .values.extraVolumes -}}
{{- if $extra -}}
{{- $names := list -}}{{- range $extra -}}{{- $names = append $names .name -}}{{- end -}}
{{- $kept := list -}}
{{- range .pod.volumes -}}{{- if not (has .name $names) -}}{{- $kept = append $kept . -}}{{- end -}}{{- end -}}
{{- $_ := set .pod "volumes" (concat $kept $extra) -}}
{{- $_ := set .pod.securityContext "fsGroup" .pod.securityContext.runAsGroup -}}
{{- end -}}
{{- $_ := set .container "volumeMounts" (concat .container.volumeMounts .values.extraVolumeMounts) -}}
{{- end -}}

{{/* What the cluster's own kube-scheduler needs in its configuration: that of the second one without what is its own. */}}
{{- define "vgpushare.clusterSchedulerConfig" -}}
{{- $config := .Files.Get "files/base/scheduler-config.yaml" | fromYaml -}}
{{- pick $config "percentageOfNodesToScore" "extenders" | toYaml -}}
{{- end -}}

{{/*
The name of the kube-scheduler's configuration: another content has another name, so that the pods change with it. The hash is
kustomize's (api/internal/hasher/hasher.go in its sources), so that an installation by kustomize is taken over without a ConfigMap left behind.
*/}}
{{- define "vgpushare.schedulerConfig" -}}
{{- .Files.Get "files/base/scheduler-config.yaml" | replace "vgpu-system" .Release.Namespace | replace "schedulerName: vgpu-scheduler" (printf "schedulerName: %s" (include "vgpushare.schedulerName" .)) -}}
{{- end -}}
{{- define "vgpushare.schedulerConfigName" -}}
{{- $data := dict "scheduler-config.yaml" (include "vgpushare.schedulerConfig" .) -}}
{{- $hash := dict "kind" "ConfigMap" "name" "" "data" $data | toJson | sha256sum | trunc 10 -}}
vgpu-scheduler-config-{{ $hash | replace "0" "g" | replace "1" "h" | replace "3" "k" | replace "a" "m" | replace "e" "t" }}
{{- end -}}
