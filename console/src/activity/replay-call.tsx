// A recorded call made once more: the same request, or one that is edited first.
import { useMutation } from "@tanstack/react-query";
import { RotateCcw } from "lucide-react";
import { useId, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { useAway } from "../api/connection";
import { queryClient } from "../api/queries";
import type { RecordedCall } from "../api/schema";
import { DisclosureButton } from "../chat/disclosure";
import { jsonWords, parseJson } from "../servers/form/jsonc";
import { FailureAlert } from "../ui/alert";
import { Field } from "../ui/field";
import { isSubmitChord } from "../ui/ime";
import { JsonView } from "../ui/json-view";
import { replay } from "./flight";
import { type Editable, editableOf, isObject } from "./replay";

export function ReplayCall({ flight }: { flight: RecordedCall }) {
  const { t } = useTranslation();
  const id = useId();
  const edit = useEdit(flight);
  const again = useMutation({
    mutationFn: (body: string | undefined) => replay(flight.call_id, body),
    onSettled: () => queryClient.invalidateQueries({ queryKey: ["activity"] }),
  });
  const held = useAway() || again.isPending || edit.wrong !== null;
  const send = () => {
    if (!held) again.mutate(edit.body);
  };
  return (
    <div className="space-y-2">
      {edit.open && edit.editable && (
        <div id={id}>
          <Editor edit={edit} editable={edit.editable} redacted={flight.request.redacted} onSend={send} />
        </div>
      )}
      <p className="flex flex-wrap items-center gap-2">
        <button
          type="button"
          className="btn btn-small"
          disabled={held || !flight.replayable}
          aria-busy={again.isPending}
          onClick={send}
        >
          <RotateCcw size={14} aria-hidden />
          {t("flight.replay")}
        </button>
        {edit.editable && flight.replayable && (
          <DisclosureButton open={edit.open} onToggle={edit.toggle} controls={id}>
            {t(`flight.edit.${edit.editable.part}`)}
          </DisclosureButton>
        )}
        <span className="text-sm text-soft">
          {t(!flight.replayable ? "flight.notReplayable" : edit.open ? "flight.editedHint" : "flight.replayHint")}
        </span>
      </p>
      <div aria-live="polite">
        {again.isError && <FailureAlert title={t("flight.replayFailed")} failure={again.error} />}
        {again.data && (
          <section aria-label={t("flight.replayed")}>
            <p className="mb-1 text-sm font-medium">{t("flight.replayed")}</p>
            <JsonView value={again.data.result} />
          </section>
        )}
      </div>
    </div>
  );
}

type Edit = ReturnType<typeof useEdit>;

/** What was typed stays while the editor is closed; only an open one changes what is sent. */
function useEdit(flight: RecordedCall) {
  const { t } = useTranslation();
  const editable = useMemo(() => editableOf(flight), [flight]);
  const [open, setOpen] = useState(false);
  const [typed, setTyped] = useState<string | null>(null);
  const text = typed ?? editable?.text ?? "";
  const wrong = useMemo(() => {
    if (!open) return null;
    const read = parseJson(text);
    if ("problem" in read) return jsonWords(read.problem, t);
    return isObject(read.value) ? null : t("flight.notObject");
  }, [open, text, t]);
  const body = open && editable ? editable.body(text) : undefined;
  return { editable, open, toggle: () => setOpen(!open), text, setTyped, wrong, body };
}

type EditorProps = { edit: Edit; editable: Editable; redacted: boolean; onSend: () => void };

function Editor({ edit, editable, redacted, onSend }: EditorProps) {
  const { t } = useTranslation();
  return (
    <Field
      label={t(`flight.edited.${editable.part}`)}
      error={edit.wrong}
      hint={redacted ? t("flight.editRedacted") : undefined}
    >
      {(field) => (
        <textarea
          {...field}
          rows={Math.min(16, Math.max(4, edit.text.split("\n").length))}
          className="input font-mono text-sm"
          spellCheck={false}
          autoCapitalize="off"
          value={edit.text}
          onChange={(event) => edit.setTyped(event.target.value)}
          onKeyDown={(event) => {
            if (isSubmitChord(event)) onSend();
          }}
        />
      )}
    </Field>
  );
}
