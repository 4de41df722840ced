// Says that the daemon does not answer, and that what is shown may be old.
import { useTranslation } from "react-i18next";
import { useAway } from "../api/connection";
import { Alert } from "../ui/alert";
import { useLate } from "../ui/states";

export function AwayBanner() {
  return useAway() ? <Banner /> : null;
}

/** A stream that comes back at once is not worth a word. */
function Banner() {
  const { t } = useTranslation();
  if (!useLate(700)) return null;
  return (
    <div className="mb-4">
      <Alert tone="warn" role="status" title={t("away.title")}>
        <p>{t("away.text")}</p>
        <p className="text-soft">{t("away.hint")}</p>
      </Alert>
    </div>
  );
}
