{{/* The name of everything: the release's name where it says "fluence" already. */}}
{{- define "fluence.fullname" -}}
{{- if contains "fluence" .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-fluence" .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Labels of every object. */}}
{{- define "fluence.labels" -}}
app.kubernetes.io/name: fluence
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: fluence
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* Labels by which pods of one process are selected; (dict "root" $ "process" "webhook"). */}}
{{- define "fluence.selector" -}}
app.kubernetes.io/name: fluence
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .process }}
{{- end -}}

{{/* The name of what belongs to one process; (dict "root" $ "process" "webhook"). */}}
{{- define "fluence.process" -}}
{{- printf "%s-%s" (include "fluence.fullname" .root) .process -}}
{{- end -}}

{{/*
The Deployment of one process; (dict "root" $ "process" "webhook" "args" (list ...) "ports" (list ...)).
All three are alike but for their arguments and ports.
*/}}
{{- define "fluence.deployment" -}}
{{- $values := index .root.Values .process -}}
{{- $rules := and .root.Values.webhook.extraRules (ne .process "scheduler") -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "fluence.process" . }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "fluence.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .process }}
spec:
  replicas: {{ $values.replicas }}
  selector:
    matchLabels:
      {{- include "fluence.selector" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "fluence.labels" .root | nindent 8 }}
        app.kubernetes.io/component: {{ .process }}
      {{- if $rules }}
      annotations:
        # Rules are read at start, so a change of them must restart the pods.
        checksum/rules: {{ .root.Values.webhook.extraRules | sha256sum }}
      {{- end }}
    spec:
      serviceAccountName: {{ include "fluence.process" . }}
      # A scheduler cannot schedule its own pod.
      schedulerName: default-scheduler
      # Service links would add variables such as FLUENCE_WEBHOOK_PORT, which look like our settings.
      enableServiceLinks: false
      terminationGracePeriodSeconds: 30
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        seccompProfile: {type: RuntimeDefault}
      {{- with .root.Values.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      {{- with .root.Values.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
        - name: {{ .process }}
          image: {{ printf "%s:%s" .root.Values.image.repository (.root.Values.image.tag | default .root.Chart.AppVersion) | quote }}
          imagePullPolicy: {{ .root.Values.image.pullPolicy }}
          args:
            - {{ .process }}
            - --namespace={{ .root.Release.Namespace }}
            - --scheduler-name={{ .root.Values.schedulerName }}
            - --log-level={{ .root.Values.logLevel }}
            - --probe-port=8081
            {{- range .args }}
            - {{ . }}
            {{- end }}
            {{- if $rules }}
            - --rules=/etc/fluence/rules.yaml
            {{- end }}
          ports:
            - {name: probes, containerPort: 8081}
            {{- range .ports }}
            - {{ toJson . }}
            {{- end }}
          livenessProbe:
            httpGet: {path: /healthz, port: probes}
            periodSeconds: 10
            timeoutSeconds: 5
          readinessProbe:
            httpGet: {path: /readyz, port: probes}
            periodSeconds: 5
            timeoutSeconds: 5
          startupProbe:
            httpGet: {path: /healthz, port: probes}
            periodSeconds: 2
            failureThreshold: 30
          resources:
            {{- toYaml $values.resources | nindent 12 }}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: {drop: [ALL]}
          volumeMounts:
            - {name: tmp, mountPath: /tmp}
            {{- if $rules }}
            - {name: rules, mountPath: /etc/fluence, readOnly: true}
            {{- end }}
      volumes:
        # Python reads certificates from files only. They are written here for a moment, in memory.
        - name: tmp
          emptyDir: {medium: Memory, sizeLimit: 16Mi}
        {{- if $rules }}
        - name: rules
          configMap: {name: {{ include "fluence.fullname" .root }}-rules}
        {{- end }}
      {{- with .root.Values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .root.Values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .root.Values.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- end }}
{{- end -}}

{{/* The ServiceAccount of one process, its roles bound to it; (dict "root" $ "process" "webhook"). */}}
{{- define "fluence.account" -}}
{{- $name := include "fluence.process" . -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ $name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "fluence.labels" .root | nindent 4 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $name }}
  labels:
    {{- include "fluence.labels" .root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $name }}
subjects:
  - kind: ServiceAccount
    name: {{ $name }}
    namespace: {{ .root.Release.Namespace }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ $name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "fluence.labels" .root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ $name }}
subjects:
  - kind: ServiceAccount
    name: {{ $name }}
    namespace: {{ .root.Release.Namespace }}
{{- end -}}

{{/* The Role by which one process leads: its own lease and no other; (dict "root" $ "process" "scheduler"). */}}
{{- define "fluence.leaseRole" -}}
{{- $name := include "fluence.process" . -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ $name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "fluence.labels" .root | nindent 4 }}
rules:
  # The right to create cannot be limited to a name: the API server does not know the name when it checks it.
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    verbs: [create]
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    resourceNames: [{{ $name }}]
    verbs: [get, update]
{{- end -}}
