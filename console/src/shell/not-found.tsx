// An address that leads nowhere.
import { useTranslation } from "react-i18next";
import { Link } from "wouter";
import { PageHead } from "../ui/page";

export function NotFound() {
  const { t } = useTranslation();
  return (
    <>
      <PageHead title={t("app.notFound")} />
      <p className="mb-4 text-soft">{t("app.notFoundHint")}</p>
      <Link href="/" className="btn">
        {t("app.backToServers")}
      </Link>
    </>
  );
}
