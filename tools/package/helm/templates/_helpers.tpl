{{/* A release's name may contain dots, and has at most 53 characters; that of a StatefulSet at most 52. */}}
{{- define "firn.name" -}}
{{ .Release.Name | replace "." "-" | trunc 52 | trimSuffix "-" }}
{{- end }}

{{- define "firn.selector" -}}
app.kubernetes.io/name: firn
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* A volume of a Secret: (list NAME SECRET). With the pod's fsGroup, the server's group may read it. */}}
{{- define "firn.secret" -}}
- name: {{ index . 0 }}
  secret: {secretName: {{ index . 1 | quote }}, defaultMode: 0440}
{{- end }}
