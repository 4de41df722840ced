// The isolation that is in force, as the daemon read it back from the system.
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import type { ServerView } from "../../api/schema";
import { sentence } from "../../ui/format";
import { Card, Facts } from "./overview";

const KNOWN = [
  "runtime",
  "user",
  "no_new_privileges",
  "seccomp",
  "capabilities",
  "read_only_root",
  "network",
  "memory",
  "cpu",
  "pids",
  "disk",
] as const;

export function IsolationCard({ server }: { server: ServerView }) {
  const { t } = useTranslation();
  if (server.kind === "remote") return null;
  const isolation = server.isolation as Record<string, unknown> | null | undefined;
  if (!isolation) {
    return (
      <Card title={t("overview.isolation")}>
        <p className="text-soft">{t("overview.isolationNone")}</p>
      </Card>
    );
  }
  const name = (key: string) => {
    const known = KNOWN.find((word) => word === key);
    return known ? t(`overview.isolationKeys.${known}`) : sentence(key.replaceAll("_", " "));
  };
  const keys = [
    ...KNOWN.filter((key) => key in isolation),
    ...Object.keys(isolation).filter((key) => !(KNOWN as readonly string[]).includes(key)),
  ];
  return (
    <Card title={t("overview.isolation")} hint={t("overview.isolationHint")}>
      <Facts facts={keys.map((key) => [name(key), <Value key={key} value={isolation[key]} />])} />
    </Card>
  );
}

/** Long lists fold: a process of root has every capability. */
function Value({ value }: { value: unknown }): ReactNode {
  const { t } = useTranslation();
  if (value === null || value === undefined) return <span className="text-soft">{t("common.unknown")}</span>;
  if (typeof value === "boolean") return t(value ? "common.yes" : "common.no");
  if (Array.isArray(value)) {
    if (value.length === 0) return t("common.none");
    if (value.length <= 4) return value.join(", ");
    return (
      <details>
        <summary>{value.length}</summary>
        <span className="text-sm text-soft">{value.join(", ")}</span>
      </details>
    );
  }
  if (typeof value === "object") return <code>{JSON.stringify(value)}</code>;
  return value === "not enforced" ? (
    <span className="text-warn">{t("overview.notEnforced")}</span>
  ) : (
    String(value as string | number)
  );
}
