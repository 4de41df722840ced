// Save; for a server that a failed start switched off: "Save and start", which is also what Enter
// does, and "Save" beside it. Neither is disabled for an invalid form: pressing it names the fields.
import { LoaderCircle } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { ServerForm } from "./use-server-form";

export function SaveButtons({ form, formId }: { form: ServerForm; formId: string }) {
  const { t } = useTranslation();
  const saveOnly = () => {
    const element = document.getElementById(formId);
    if (element instanceof HTMLFormElement) form.saveOnly(element);
  };
  return (
    <>
      {form.starts && (
        // Not a submit button: the first of those in the document would answer to Enter.
        <button type="button" className="btn" onClick={saveOnly}>
          {t("common.save")}
        </button>
      )}
      <button type="submit" form={formId} className="btn btn-primary" aria-busy={form.saving}>
        {form.saving && <LoaderCircle size={15} className="spin" aria-hidden />}
        {t(form.starts ? "form.saveAndStart" : "common.save")}
      </button>
    </>
  );
}
