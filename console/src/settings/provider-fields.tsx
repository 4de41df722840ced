// The fields of a provider. A stored key is never shown.
import { useQuery } from "@tanstack/react-query";
import { type ComponentProps, useId } from "react";
import { useTranslation } from "react-i18next";
import type { ProviderKind, ProviderView, ProvidersView } from "../api/schema";
import { modelsQuery } from "../chat/api";
import { Flag } from "../servers/form/flag-fields";
import { Field } from "../ui/field";
import { type ProviderDraft, kindOf, kindWords } from "./provider-draft";

type Props = {
  all: ProvidersView;
  provider: ProviderView | null;
  draft: ProviderDraft;
  onChange: (part: Partial<ProviderDraft>) => void;
  /** What is wrong with a field. */
  problem: (field: string) => string | undefined;
};

export function ProviderFields(props: Props) {
  const { t } = useTranslation();
  const { all, provider, draft, onChange, problem } = props;
  const standard = kindOf(all, draft.kind)?.base_url ?? "";
  return (
    <>
      <KindField {...props} />
      <Field label={t("models.name")} hint={t("models.nameHint")} required error={problem("name")}>
        {(field) => <Input {...field} data-first value={draft.name} onText={(name) => onChange({ name })} />}
      </Field>
      <Field label={t("models.baseUrl")} hint={t("models.baseUrlHint", { url: standard })} error={problem("base_url")}>
        {(field) => (
          <Input
            {...field}
            type="url"
            className="font-mono text-sm"
            value={draft.baseUrl}
            placeholder={standard}
            onText={(baseUrl) => onChange({ baseUrl })}
          />
        )}
      </Field>
      <KeyFields {...props} />
      <ModelField {...props} />
      {!provider?.is_default && (
        <Flag label={t("models.useDefault")} checked={draft.use} onChange={(use) => onChange({ use })} />
      )}
    </>
  );
}

type InputProps = Omit<ComponentProps<"input">, "onChange"> & { onText: (text: string) => void };

function Input({ onText, className = "", ...rest }: InputProps) {
  return (
    <input
      {...rest}
      className={`input ${className}`}
      onChange={(event) => onText(event.target.value)}
      autoComplete="off"
      spellCheck={false}
    />
  );
}

function KindField({ all, provider, draft, onChange, problem }: Props) {
  const { t } = useTranslation();
  /** A name that nobody typed goes along with the sort. */
  const choose = (kind: ProviderKind) => {
    const untouched = draft.name === "" || draft.name === kindWords(draft.kind, all, t);
    onChange({ kind, ...(untouched ? { name: kindWords(kind, all, t) } : {}) });
  };
  return (
    <Field label={t("models.kind")} error={problem("kind")}>
      {(field) => (
        <select
          {...field}
          className="input w-full"
          value={draft.kind}
          disabled={provider !== null}
          onChange={(event) => choose(event.target.value as ProviderKind)}
        >
          {all.kinds.map(({ kind }) => (
            <option key={kind} value={kind}>
              {kindWords(kind, all, t)}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

function KeyFields({ all, provider, draft, onChange, problem }: Props) {
  const { t } = useTranslation();
  const kept = provider?.has_key ?? false;
  const needed = kindOf(all, draft.kind)?.needs_key ?? true;
  const hint = t(kept ? "models.keyKept" : needed ? "models.keyNone" : "models.keyNotNeeded");
  return (
    <div className="space-y-2">
      <Field label={t("models.key")} hint={hint} error={problem("api_key")}>
        {(field) => (
          <Input
            {...field}
            type="password"
            className="font-mono text-sm"
            value={draft.key}
            placeholder={kept ? "••••••••" : ""}
            onText={(key) => onChange({ key })}
          />
        )}
      </Field>
      {kept && !draft.key && (
        <Flag label={t("models.dropKey")} checked={draft.dropKey} onChange={(dropKey) => onChange({ dropKey })} />
      )}
    </div>
  );
}

/** Free text, because not every provider lists its models; what it lists is offered. */
function ModelField({ provider, draft, onChange, problem }: Props) {
  const { t } = useTranslation();
  const listId = useId();
  const models = useQuery({ ...modelsQuery(provider?.id ?? ""), enabled: provider !== null }).data?.models ?? [];
  return (
    <Field label={t("models.defaultModel")} hint={t("models.modelHint")} error={problem("default_model")}>
      {(field) => (
        <>
          <Input
            {...field}
            className="font-mono text-sm"
            value={draft.model}
            list={listId}
            onText={(model) => onChange({ model })}
          />
          <datalist id={listId}>
            {models.map((name) => (
              <option key={name} value={name} />
            ))}
          </datalist>
        </>
      )}
    </Field>
  );
}
