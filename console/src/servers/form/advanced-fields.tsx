// What most people never touch: folded away, with the daemon's defaults in it.
import { useTranslation } from "react-i18next";
import type { RestartPolicy, Sharing } from "../../api/schema";
import { SelectField } from "./select-field";
import { TextField } from "./text-field";
import type { ServerForm } from "./use-server-form";

export function AdvancedFields({ form }: { form: ServerForm }) {
  const { t } = useTranslation();
  const { draft, change } = form;
  const remote = draft.kind === "remote";
  return (
    <details className="rounded-lg border border-line">
      <summary className="px-3 py-2 font-medium">{t("form.advanced")}</summary>
      <div className="space-y-4 border-t border-line p-3">
        <TextField
          form={form}
          of="prefix"
          field="prefix"
          label={t("form.prefix")}
          hint={t("form.prefixHint")}
          placeholder={draft.name.trim()}
          mono
        />
        {!remote && (
          <TextField
            form={form}
            of="cwd"
            field="cwd"
            label={t("form.cwd")}
            hint={t(draft.kind === "container" ? "form.cwdHintContainer" : "form.cwdHint")}
            mono
          />
        )}
        {draft.kind === "container" && (
          <TextField form={form} of="user" field="user" label={t("form.user")} hint={t("form.userHint")} mono />
        )}
        <div className="grid gap-4 sm:grid-cols-2">
          <SelectField
            form={form}
            field="restart_policy"
            label={t(remote ? "form.restartRemote" : "form.restart")}
            value={draft.restart}
            onChange={(restart) => change({ restart: restart as RestartPolicy })}
            options={(["always", "on-failure", "never"] as const).map((key) => [
              key,
              t(`form.${remote ? "restartsRemote" : "restarts"}.${key}`),
            ])}
          />
          <SelectField
            form={form}
            field="sharing"
            label={t(remote ? "form.sharingRemote" : "form.sharing")}
            value={draft.sharing}
            onChange={(sharing) => change({ sharing: sharing as Sharing })}
            options={(["shared", "per_session"] as const).map((key) => [key, t(`form.sharings.${key}`)])}
          />
          <TextField
            form={form}
            of="callTimeout"
            field="call_timeout_ms"
            label={t("form.callTimeout")}
            hint={t("form.callTimeoutHint")}
            numeric
          />
          <TextField form={form} of="startTimeout" field="start_timeout_ms" label={t("form.startTimeout")} numeric />
          <TextField
            form={form}
            of="maxInFlight"
            field="max_in_flight"
            label={t("form.maxInFlight")}
            hint={t("form.maxInFlightHint")}
          />
          <TextField
            form={form}
            of="heartbeatInterval"
            field="heartbeat.interval_ms"
            label={t("form.heartbeatInterval")}
            numeric
          />
          <TextField
            form={form}
            of="heartbeatTimeout"
            field="heartbeat.timeout_ms"
            label={t("form.heartbeatTimeout")}
            numeric
          />
        </div>
        {!remote && <LimitFields form={form} />}
      </div>
    </details>
  );
}

function LimitFields({ form }: { form: ServerForm }) {
  const { t } = useTranslation();
  return (
    <fieldset>
      <legend className="mb-2 font-medium">{t("form.limits")}</legend>
      <div className="grid grid-cols-2 gap-4 sm:grid-cols-4">
        <TextField form={form} of="cpu" field="resource_limits.cpu" label={t("form.cpu")} placeholder="0.5" />
        <TextField form={form} of="memory" field="resource_limits.memory" label={t("form.memory")} placeholder="512M" />
        <TextField form={form} of="disk" field="resource_limits.disk" label={t("form.disk")} placeholder="1G" />
        <TextField
          form={form}
          of="pids"
          field="resource_limits.pids"
          label={t("form.pids")}
          placeholder="256"
          numeric
        />
      </div>
      {form.draft.kind === "process" && <p className="mt-2 text-sm text-soft">{t("form.limitsProcess")}</p>}
    </fieldset>
  );
}
