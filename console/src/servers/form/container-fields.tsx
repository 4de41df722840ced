// What only a container has: volumes, ports, network, and who isolates it.
import { Plus, X } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { Network, Provider } from "../../api/schema";
import { Field } from "../../ui/field";
import { Flag } from "./flag-fields";
import { type PortRow, portRow } from "./draft";
import { SelectField } from "./select-field";
import { TextField } from "./text-field";
import type { ServerForm } from "./use-server-form";

export function ContainerFields({ form }: { form: ServerForm }) {
  const { t } = useTranslation();
  const { draft, change } = form;
  return (
    <>
      <Field label={t("form.volumes")} hint={t("form.volumesHint")} error={form.problem("volumes")}>
        {(field) => (
          <textarea
            {...field}
            rows={2}
            className="input font-mono text-sm"
            spellCheck={false}
            value={draft.volumes}
            onChange={(event) => change({ volumes: event.target.value })}
            onBlur={() => form.leave("volumes")}
          />
        )}
      </Field>
      <Ports form={form} />
      <Flag
        label={t("form.bridge")}
        hint={t("form.bridgeHint")}
        checked={draft.bridge}
        onChange={(bridge) => change({ bridge })}
      />
      {!draft.bridge && (
        <TextField
          form={form}
          of="httpPath"
          field="http_path"
          label={t("form.httpPath")}
          hint={t("form.httpPathHint")}
          mono
          placeholder="/mcp"
        />
      )}
      <div className="grid gap-4 sm:grid-cols-2">
        <SelectField
          form={form}
          field="network"
          label={t("form.network")}
          value={draft.network}
          onChange={(network) => change({ network: network as Network })}
          options={[
            ["egress", t("form.networks.egress")],
            ["none", t("form.networks.none")],
            ["host", t("form.networks.host")],
          ]}
        />
        <SelectField
          form={form}
          field="provider"
          label={t("form.provider")}
          value={draft.provider}
          onChange={(provider) => change({ provider: provider as Provider | "" })}
          options={[
            ["", t("form.providers.auto")],
            ["gvisor", t("form.providers.gvisor")],
            ["podman", t("form.providers.podman")],
            ["krun", t("form.providers.krun")],
            ["firecracker", t("form.providers.firecracker")],
            ["e2b", t("form.providers.e2b")],
          ]}
        />
      </div>
      <Flag
        label={t("form.require")}
        checked={draft.requireGvisor}
        onChange={(requireGvisor) => change({ requireGvisor })}
      />
    </>
  );
}

function Ports({ form }: { form: ServerForm }) {
  const { t } = useTranslation();
  const { ports } = form.draft;
  const put = (rows: PortRow[]) => form.change({ ports: rows });
  const update = (key: number, part: Partial<PortRow>) =>
    put(ports.map((row) => (row.key === key ? { ...row, ...part } : row)));
  return (
    <fieldset>
      <legend className="mb-1 font-medium">{t("form.ports")}</legend>
      <div className="space-y-2">
        {ports.map((row, index) => {
          const problem = form.problem(`ports.${index}`);
          return (
            <div key={row.key}>
              <div className="flex items-center gap-1.5">
                <input
                  className="input w-28"
                  inputMode="numeric"
                  aria-label={t("form.portContainer", { n: index + 1 })}
                  placeholder="8080"
                  value={row.container}
                  onChange={(event) => update(row.key, { container: event.target.value })}
                  onBlur={() => form.leave(`ports.${index}`)}
                  aria-invalid={Boolean(problem)}
                  aria-errormessage={problem ? `port-${row.key}-error` : undefined}
                />
                <span aria-hidden className="text-soft">
                  →
                </span>
                <input
                  className="input w-28"
                  inputMode="numeric"
                  aria-label={t("form.portHost", { n: index + 1 })}
                  placeholder={t("form.portHostHint")}
                  value={row.host}
                  onChange={(event) => update(row.key, { host: event.target.value })}
                  onBlur={() => form.leave(`ports.${index}`)}
                />
                <button
                  type="button"
                  className="btn btn-quiet btn-icon"
                  aria-label={t("form.portRemove", { n: index + 1 })}
                  onClick={() => put(ports.filter(({ key }) => key !== row.key))}
                >
                  <X size={16} aria-hidden />
                </button>
              </div>
              {problem && (
                <p id={`port-${row.key}-error`} className="mt-1 text-sm text-bad">
                  {problem}
                </p>
              )}
            </div>
          );
        })}
      </div>
      <button type="button" className="btn btn-small mt-2" onClick={() => put([...ports, portRow()])}>
        <Plus size={14} aria-hidden />
        {t("form.portAdd")}
      </button>
    </fieldset>
  );
}
