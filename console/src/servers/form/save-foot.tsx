// The foot of the dialog with its buttons, always in sight.
import { useTranslation } from "react-i18next";
import { Unsaved } from "../../ui/unsaved";
import { SaveButtons } from "./save-buttons";
import type { ServerForm } from "./use-server-form";

type Props = { form: ServerForm; formId: string; onCancel: () => void; note?: string | undefined };

export function SaveFoot({ form, formId, onCancel, note }: Props) {
  const { t } = useTranslation();
  return (
    <div className="sticky -bottom-4 -mx-4 mt-4 -mb-4 flex flex-wrap items-center justify-end gap-2 border-t border-line bg-surface px-4 py-3">
      {note && <p className="mr-auto text-sm text-soft">{note}</p>}
      <button type="button" className="btn" onClick={onCancel}>
        {t("common.cancel")}
      </button>
      <Unsaved when={form.dirty} />
      <SaveButtons form={form} formId={formId} />
    </div>
  );
}
