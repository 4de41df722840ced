// Save and Cancel, at the foot of the dialog and always in sight. Save is never disabled for what
// is wrong with the form: pressing it says what that is.
import { LoaderCircle } from "lucide-react";
import { useTranslation } from "react-i18next";

type Props = { formId: string; saving: boolean; onCancel: () => void; note?: string | undefined };

export function SaveFoot({ formId, saving, onCancel, note }: Props) {
  const { t } = useTranslation();
  return (
    <div className="sticky -bottom-4 -mx-4 mt-4 -mb-4 flex flex-wrap items-center justify-end gap-2 border-t border-line bg-surface px-4 py-3">
      {note && <p className="mr-auto text-sm text-soft">{note}</p>}
      <button type="button" className="btn" onClick={onCancel}>
        {t("common.cancel")}
      </button>
      <button type="submit" form={formId} className="btn btn-primary" aria-busy={saving}>
        {saving && <LoaderCircle size={15} className="spin" aria-hidden />}
        {t("common.save")}
      </button>
    </div>
  );
}
