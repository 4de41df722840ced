// The form of a server: what everybody needs first, the rest folded away.
import { useId } from "react";
import { useTranslation } from "react-i18next";
import { FailureAlert } from "../../ui/alert";
import { Field } from "../../ui/field";
import { shellWord } from "../../ui/format";
import { guardComposition, isSubmitChord } from "../../ui/ime";
import { AdvancedFields } from "./advanced-fields";
import { ContainerFields } from "./container-fields";
import { type Kind, argvOfDraft } from "./draft";
import { EnvTable } from "./env-table";
import { FlagFields } from "./flag-fields";
import { FormNotes } from "./form-notes";
import { RemoteFields } from "./remote-fields";
import { TextField } from "./text-field";
import type { ServerForm } from "./use-server-form";

export function ServerFormFields({ form, id }: { form: ServerForm; id: string }) {
  const { t } = useTranslation();
  const { draft, change } = form;
  return (
    <form
      id={id}
      noValidate
      className="space-y-4"
      onSubmit={form.submit}
      onKeyDown={(event) => {
        guardComposition(event);
        if (isSubmitChord(event)) event.currentTarget.requestSubmit();
      }}
    >
      {Boolean(form.failure) && <FailureAlert title={t("form.saveFailed")} failure={form.failure} />}
      <KindChoice value={draft.kind} onChange={(kind) => change({ kind })} />
      <TextField form={form} of="name" field="name" label={t("form.name")} hint={t("form.nameHint")} required />
      <ProgramFields form={form} />
      <TextField form={form} of="description" field="description" label={t("form.description")} />
      <EnvTable
        key={draft.kind === "remote" ? "headers" : "env"}
        form={form}
        of={draft.kind === "remote" ? "headers" : "env"}
      />
      {draft.kind === "container" && <ContainerFields form={form} />}
      <FlagFields form={form} />
      <FormNotes form={form} />
      <AdvancedFields form={form} />
    </form>
  );
}

const KINDS = { process: "form.kindProcess", container: "form.kindContainer", remote: "form.kindRemote" } as const;

function KindChoice({ value, onChange }: { value: Kind; onChange: (kind: Kind) => void }) {
  const { t } = useTranslation();
  const name = useId();
  return (
    <fieldset>
      <legend className="mb-1 font-medium">{t("form.kind")}</legend>
      <div className="flex flex-wrap gap-1.5">
        {(Object.keys(KINDS) as Kind[]).map((kind) => (
          <label key={kind} className="chip cursor-pointer">
            <input
              type="radio"
              className="sr-only"
              name={name}
              checked={value === kind}
              onChange={() => onChange(kind)}
            />
            {t(KINDS[kind])}
          </label>
        ))}
      </div>
    </fieldset>
  );
}

function ProgramFields({ form }: { form: ServerForm }) {
  const { t } = useTranslation();
  const { kind } = form.draft;
  if (kind === "remote") return <RemoteFields form={form} />;
  return (
    <>
      {kind === "process" ? (
        <TextField
          form={form}
          of="command"
          field="command"
          label={t("form.command")}
          hint={t("form.commandHint")}
          required
          mono
        />
      ) : (
        <TextField
          form={form}
          of="image"
          field="image"
          label={t("form.image")}
          hint={t("form.imageHint")}
          required
          mono
        />
      )}
      <Field label={t("form.args")} hint={t("form.argsHint")} error={form.problem("args")}>
        {(field) => (
          <textarea
            {...field}
            rows={4}
            className="input font-mono text-sm"
            spellCheck={false}
            autoCapitalize="off"
            value={form.draft.args}
            onChange={(event) => form.change({ args: event.target.value })}
            onBlur={() => form.leave("args")}
          />
        )}
      </Field>
      <ArgvPreview words={argvOfDraft(form.draft)} />
    </>
  );
}

/** Each argument in a box of its own: where one ends and the next begins can be seen. */
function ArgvPreview({ words }: { words: string[] }) {
  const { t } = useTranslation();
  if (words.length === 0) return null;
  return (
    <div className="-mt-2 flex flex-wrap items-center gap-1 text-sm">
      <span className="mr-1 text-soft">{t("form.argv")}</span>
      {words.map((word, index) => (
        // Arguments are told apart by their place.
        <code key={index} className="rounded bg-sunken px-1.5 py-0.5 whitespace-pre-wrap">
          {shellWord(word)}
        </code>
      ))}
    </div>
  );
}
