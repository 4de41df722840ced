// A provider of models: what sort it is, where it is, with which key. A stored key is never shown.
import { useMutation, useQuery } from "@tanstack/react-query";
import { type FormEvent, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { ApiFailure } from "../api/client";
import type { ProviderBody, ProviderKind, ProviderView, ProvidersView } from "../api/schema";
import { modelsQuery, refreshProviders, saveProvider, testProvider } from "../chat/api";
import { Flag } from "../servers/form/flag-fields";
import { FailureAlert } from "../ui/alert";
import { Field } from "../ui/field";
import { guardComposition, isSubmitChord } from "../ui/ime";
import { Modal } from "../ui/modal";
import { TestReport } from "./test-report";

type Props = { all: ProvidersView; provider: ProviderView | null; onClose: () => void };

type Draft = {
  kind: ProviderKind;
  name: string;
  baseUrl: string;
  key: string;
  dropKey: boolean;
  model: string;
  use: boolean;
};

function draftOf(all: ProvidersView, provider: ProviderView | null): Draft {
  const kind = all.kinds.find(({ kind }) => kind === provider?.kind) ?? all.kinds[0];
  return {
    kind: kind?.kind ?? "openai",
    name: provider?.name ?? kind?.name ?? "",
    baseUrl: provider && provider.base_url !== kind?.base_url ? provider.base_url : "",
    key: "",
    dropKey: false,
    model: provider?.default_model ?? "",
    use: provider?.is_default ?? !all.configured,
  };
}

/** What is sent. A key that was not typed stays as it is. */
export function changeOf(draft: Draft, standard: string): ProviderBody {
  return {
    kind: draft.kind,
    name: draft.name.trim(),
    base_url: draft.baseUrl.trim() || standard,
    ...(draft.key ? { api_key: draft.key.trim() } : draft.dropKey ? { api_key: "" } : {}),
    default_model: draft.model.trim(),
    ...(draft.use ? { is_default: true } : {}),
  };
}

/** A name as an id that nobody has yet. */
export function idFor(name: string, kind: string, taken: readonly string[]): string {
  const plain = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 36)
    .replace(/-+$/, "");
  const base = plain || kind;
  for (let n = 1; ; n += 1) {
    const id = n === 1 ? base : `${base}-${n}`;
    if (!taken.includes(id)) return id;
  }
}

export default function ProviderDialog({ all, provider, onClose }: Props) {
  const { t } = useTranslation();
  const formId = useId();
  const [draft, setDraft] = useState(() => draftOf(all, provider));
  const [tried, setTried] = useState(false);
  const change = (part: Partial<Draft>) => setDraft({ ...draft, ...part });
  const kind = all.kinds.find(({ kind }) => kind === draft.kind);
  const taken = all.providers.map(({ id }) => id);
  const id = provider?.id ?? idFor(draft.name, draft.kind, taken);
  const body = changeOf(draft, kind?.base_url ?? "");
  const test = useMutation({ mutationFn: () => testProvider(id, body) });
  const save = useMutation({
    mutationFn: () => saveProvider(id, body),
    onSuccess: onClose,
    onSettled: refreshProviders,
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setTried(true);
    if (draft.name.trim()) save.mutate();
  };
  const refused = (field: string) =>
    save.error instanceof ApiFailure ? save.error.fields.find(({ field: name }) => name === field)?.message : undefined;
  const foot = (
    <>
      <button
        type="button"
        className="btn mr-auto"
        onClick={() => test.mutate()}
        disabled={test.isPending}
        aria-busy={test.isPending}
      >
        {t("models.testShort")}
      </button>
      <button type="button" className="btn" onClick={onClose}>
        {t("common.cancel")}
      </button>
      <button
        type="submit"
        form={formId}
        className="btn btn-primary"
        disabled={save.isPending}
        aria-busy={save.isPending}
      >
        {t("common.save")}
      </button>
    </>
  );
  return (
    <Modal
      title={provider ? t("models.edit", { name: provider.name }) : t("models.add")}
      open
      onClose={onClose}
      foot={foot}
      steady
    >
      <form
        id={formId}
        noValidate
        onSubmit={submit}
        className="space-y-4"
        onKeyDown={(event) => {
          guardComposition(event);
          if (isSubmitChord(event)) event.currentTarget.requestSubmit();
        }}
      >
        <KindField all={all} draft={draft} fixed={provider !== null} onChange={change} error={refused("kind")} />
        <Field
          label={t("models.name")}
          hint={t("models.nameHint")}
          required
          error={tried && !draft.name.trim() ? t("models.nameRequired") : refused("name")}
        >
          {(field) => (
            <input
              {...field}
              data-first
              className="input"
              value={draft.name}
              onChange={(event) => change({ name: event.target.value })}
              autoComplete="off"
            />
          )}
        </Field>
        <Field
          label={t("models.baseUrl")}
          hint={t("models.baseUrlHint", { url: kind?.base_url ?? "" })}
          error={refused("base_url")}
        >
          {(field) => (
            <input
              {...field}
              type="url"
              className="input font-mono text-sm"
              value={draft.baseUrl}
              placeholder={kind?.base_url}
              onChange={(event) => change({ baseUrl: event.target.value })}
              autoComplete="off"
              spellCheck={false}
            />
          )}
        </Field>
        <KeyFields
          kept={provider?.has_key ?? false}
          needed={kind?.needs_key ?? true}
          draft={draft}
          onChange={change}
          error={refused("api_key")}
        />
        <ModelField provider={provider} draft={draft} onChange={change} error={refused("default_model")} />
        {!provider?.is_default && (
          <Flag label={t("models.useDefault")} checked={draft.use} onChange={(use) => change({ use })} />
        )}
        <TestReport test={test} />
        {save.isError && <FailureAlert title={t("models.saveFailed")} failure={save.error} />}
      </form>
    </Modal>
  );
}

type PartProps = { draft: Draft; onChange: (part: Partial<Draft>) => void; error: string | undefined };

function KindField({ all, draft, fixed, onChange, error }: PartProps & { all: ProvidersView; fixed: boolean }) {
  const { t } = useTranslation();
  /** A name that nobody typed goes along with the sort. */
  const choose = (kind: ProviderKind) => {
    const nameOf = (wanted: ProviderKind) => all.kinds.find(({ kind }) => kind === wanted)?.name ?? "";
    const untouched = draft.name === "" || draft.name === nameOf(draft.kind);
    onChange({ kind, ...(untouched ? { name: nameOf(kind) } : {}) });
  };
  return (
    <Field label={t("models.kind")} error={error}>
      {(field) => (
        <select
          {...field}
          className="input w-full"
          value={draft.kind}
          disabled={fixed}
          onChange={(event) => choose(event.target.value as ProviderKind)}
        >
          {all.kinds.map(({ kind, name }) => (
            <option key={kind} value={kind}>
              {name}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

function KeyFields({ kept, needed, draft, onChange, error }: PartProps & { kept: boolean; needed: boolean }) {
  const { t } = useTranslation();
  const hint = t(kept ? "models.keyKept" : needed ? "models.keyNone" : "models.keyNotNeeded");
  return (
    <div className="space-y-2">
      <Field label={t("models.key")} hint={hint} error={error}>
        {(field) => (
          <input
            {...field}
            type="password"
            className="input font-mono text-sm"
            value={draft.key}
            placeholder={kept ? "••••••••" : ""}
            onChange={(event) => onChange({ key: event.target.value })}
            autoComplete="off"
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
function ModelField({ provider, draft, onChange, error }: PartProps & { provider: ProviderView | null }) {
  const { t } = useTranslation();
  const listId = useId();
  const models = useQuery({ ...modelsQuery(provider?.id ?? ""), enabled: provider !== null }).data?.models ?? [];
  return (
    <Field label={t("models.defaultModel")} hint={t("models.modelHint")} error={error}>
      {(field) => (
        <>
          <input
            {...field}
            className="input font-mono text-sm"
            value={draft.model}
            list={listId}
            onChange={(event) => onChange({ model: event.target.value })}
            autoComplete="off"
            spellCheck={false}
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
