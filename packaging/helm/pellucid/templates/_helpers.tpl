{{- define "pellucid.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 53 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 53 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "pellucid.selector" -}}
app.kubernetes.io/name: pellucid
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "pellucid.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "pellucid.selector" . }}
{{- end }}

{{- define "pellucid.several" -}}
{{- if eq .Values.store.kind "postgres" }}yes{{ end }}
{{- end }}

{{- /* pellucid.yaml: that of the values, and what the chart sets. */ -}}
{{- define "pellucid.config" -}}
{{- $c := deepCopy .Values.config -}}
{{- $_ := set $c "version" 1 -}}
{{- $_ := set $c "listen" "0.0.0.0:7420" -}}
{{- $http := deepCopy (default dict $c.http) -}}
{{- $_ := set $http "drain" (printf "%ds" (int .Values.drainSeconds)) -}}
{{- $_ := set $c "http" $http -}}
{{- if include "pellucid.several" . -}}
{{- $_ := set $c "store" "env:PELLUCID_DB" -}}
{{- $_ := set $c "replicas" (dict "name" "env:PELLUCID_REPLICA_NAME" "address" "env:PELLUCID_REPLICA" "listen" "0.0.0.0:7421") -}}
{{- end -}}
{{- if .Values.ledgerKey.secret.name -}}
{{- $evidence := deepCopy (default dict $c.evidence) -}}
{{- $_ := set $evidence "key" "env:PELLUCID_LEDGER_KEY" -}}
{{- $_ := set $c "evidence" $evidence -}}
{{- end -}}
{{ toYaml $c }}
{{- end }}

{{- define "pellucid.pod" -}}
metadata:
  labels:
    {{- include "pellucid.labels" . | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .Values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "pellucid.name" . }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  # http.drain, ten seconds to end what is left, and the wait before SIGTERM.
  terminationGracePeriodSeconds: {{ add .Values.drainSeconds .Values.preStopSeconds 15 }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: {type: RuntimeDefault}
  containers:
    - name: pellucid
      {{- $tag := default .Chart.AppVersion .Values.image.tag }}
      image: {{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ $tag }}{{ end }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: [up, -c, /etc/pellucid/pellucid.yaml]
      ports:
        - {name: http, containerPort: 7420}
        {{- if include "pellucid.several" . }}
        - {name: replicas, containerPort: 7421}
        {{- end }}
      env:
        # A folder of its own below the volume, which others than its owner must not change.
        - {name: PELLUCID_STATE, value: /var/lib/pellucid/state}
        - {name: HOME, value: /var/cache/pellucid}
        {{- if include "pellucid.several" . }}
        - {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
        - {name: PELLUCID_REPLICA, value: "$(POD_IP):7421"}
        - {name: PELLUCID_REPLICA_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        - {name: PELLUCID_DB, valueFrom: {secretKeyRef: {name: {{ .Values.store.urlSecret.name }}, key: {{ default "url" .Values.store.urlSecret.key }}}}}
        {{- end }}
        {{- with .Values.installKey.secret }}
        {{- if .name }}
        - {name: PELLUCID_INSTALL_KEY, value: env:PELLUCID_INSTALL_KEY_HEX}
        - {name: PELLUCID_INSTALL_KEY_HEX, valueFrom: {secretKeyRef: {name: {{ .name }}, key: {{ default "install-key" .key }}}}}
        {{- end }}
        {{- end }}
        {{- with .Values.ledgerKey.secret }}
        {{- if .name }}
        - {name: PELLUCID_LEDGER_KEY, valueFrom: {secretKeyRef: {name: {{ .name }}, key: {{ default "ledger-key" .key }}}}}
        {{- end }}
        {{- end }}
        {{- range $name, $from := .Values.secretEnv }}
        - {name: {{ $name }}, valueFrom: {secretKeyRef: {name: {{ $from.name }}, key: {{ required (printf "secretEnv.%s.key" $name) $from.key }}}}}
        {{- end }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {drop: [ALL]}
      startupProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 2
        failureThreshold: 60
      livenessProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 10
        timeoutSeconds: 3
      readinessProbe:
        httpGet: {path: /readyz, port: http}
        periodSeconds: 2
        timeoutSeconds: 3
        failureThreshold: 2
      {{- if gt (int .Values.preStopSeconds) 0 }}
      lifecycle:
        # The image has no shell. It gives Services and proxies the time to send new requests elsewhere.
        preStop: {sleep: {seconds: {{ .Values.preStopSeconds }}}}
      {{- end }}
      {{- with .Values.resources }}
      resources:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      volumeMounts:
        - {name: config, mountPath: /etc/pellucid, readOnly: true}
        - {name: state, mountPath: /var/lib/pellucid}
        - {name: cache, mountPath: /var/cache/pellucid}
        - {name: tmp, mountPath: /tmp}
        {{- range .Values.secretFiles }}
        - {name: {{ printf "secret-%s" . | replace "." "-" }}, mountPath: /run/secrets/pellucid/{{ . }}, readOnly: true}
        {{- end }}
  volumes:
    - name: config
      configMap: {name: {{ include "pellucid.name" . }}}
    - name: cache
      emptyDir: {sizeLimit: {{ .Values.cacheSize }}}
    - name: tmp
      emptyDir: {sizeLimit: 64Mi}
    {{- if include "pellucid.several" . }}
    # Everything that lasts is in Postgres.
    - name: state
      emptyDir: {sizeLimit: 256Mi}
    {{- end }}
    {{- range .Values.secretFiles }}
    - name: {{ printf "secret-%s" . | replace "." "-" }}
      secret: {secretName: {{ . }}, defaultMode: 0440}
    {{- end }}
  {{- if include "pellucid.several" . }}
  topologySpreadConstraints:
    {{- range .Values.topologyKeys }}
    - maxSkew: 1
      topologyKey: {{ . }}
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "pellucid.selector" $ | nindent 10 }}
    {{- end }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
