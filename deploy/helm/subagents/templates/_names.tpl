{{- define "subagents.labels" -}}
app.kubernetes.io/name: subagents
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}
