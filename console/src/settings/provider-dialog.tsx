// Adds a provider of models or changes one: what sort it is, where it is, with which key.
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { ApiFailure } from "../api/client";
import type { ProviderView, ProvidersView } from "../api/schema";
import { refreshProviders, saveProvider, testProvider } from "../chat/api";
import { FailureAlert } from "../ui/alert";
import { guardComposition, isSubmitChord } from "../ui/ime";
import { Modal } from "../ui/modal";
import { Unsaved } from "../ui/unsaved";
import { type ProviderDraft, changeOf, draftOf, idFor } from "./provider-draft";
import { ProviderFields } from "./provider-fields";
import { TestReport } from "./test-report";

type Props = { all: ProvidersView; provider: ProviderView | null; onClose: () => void };

export default function ProviderDialog({ all, provider, onClose }: Props) {
  const { t } = useTranslation();
  const formId = useId();
  const form = useProviderForm(all, provider, onClose);
  const { save, test } = form;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    form.submit();
  };
  const foot = (
    <>
      <BusyButton className="mr-auto" busy={test.isPending} onClick={() => test.mutate()}>
        {t("models.testShort")}
      </BusyButton>
      <button type="button" className="btn" onClick={onClose}>
        {t("common.cancel")}
      </button>
      <BusyButton className="btn-primary" busy={save.isPending} form={formId}>
        {t("common.save")}
      </BusyButton>
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
        <ProviderFields
          all={all}
          provider={provider}
          draft={form.draft}
          onChange={form.change}
          problem={form.problem}
        />
        <TestReport test={test} />
        <Unsaved when={form.dirty} />
        {save.isError && <FailureAlert title={t("models.saveFailed")} failure={save.error} />}
      </form>
    </Modal>
  );
}

type BusyButtonProps = { className: string; busy: boolean; onClick?: () => void; form?: string; children: string };

/** Submits the form that it names, or does what it is told. */
function BusyButton({ className, busy, onClick, form, children }: BusyButtonProps) {
  return (
    <button
      type={form ? "submit" : "button"}
      form={form}
      className={`btn ${className}`}
      onClick={onClick}
      disabled={busy}
      aria-busy={busy}
    >
      {children}
    </button>
  );
}

function useProviderForm(all: ProvidersView, provider: ProviderView | null, onSaved: () => void) {
  const { t } = useTranslation();
  const [draft, setDraft] = useState(() => draftOf(all, provider, t));
  const [first] = useState(draft);
  const [tried, setTried] = useState(false);
  const taken = all.providers.map(({ id }) => id);
  const id = provider?.id ?? idFor(draft.name, draft.kind, taken);
  const body = changeOf(draft, all);
  const test = useMutation({ mutationFn: () => testProvider(id, body) });
  const save = useMutation({
    mutationFn: () => saveProvider(id, body),
    onSuccess: onSaved,
    onSettled: refreshProviders,
  });
  const refused = save.error instanceof ApiFailure ? save.error.fields : [];
  return {
    draft,
    dirty: JSON.stringify(draft) !== JSON.stringify(first) && !save.isSuccess,
    change: (part: Partial<ProviderDraft>) => setDraft({ ...draft, ...part }),
    test,
    save,
    submit: () => {
      setTried(true);
      if (draft.name.trim()) save.mutate();
    },
    /** What is wrong with a field. */
    problem: (field: string) =>
      field === "name" && tried && !draft.name.trim()
        ? t("models.nameRequired")
        : refused.find(({ field: name }) => name === field)?.message,
  };
}
