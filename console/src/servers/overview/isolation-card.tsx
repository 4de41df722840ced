// The isolation that is in force, as the daemon read it back from the system.
import type { TFunction } from "i18next";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import type { ServerView } from "../../api/schema";
import { en } from "../../i18n/en";
import { binaryBytes, sentence } from "../../ui/format";
import { Card, Facts } from "./overview";

const NAMES = en.overview.isolationKeys;
type Known = keyof typeof NAMES;
const KNOWN = Object.keys(NAMES) as Known[];

export function IsolationCard({ server }: { server: ServerView }) {
  const { t } = useTranslation();
  const isolation = server.isolation as Record<string, unknown> | null | undefined;
  if (!isolation) {
    return (
      <Card title={t("overview.isolation")}>
        <p className="text-soft">{t("overview.isolationNone")}</p>
      </Card>
    );
  }
  return (
    <Card title={t("overview.isolation")} hint={t("overview.isolationHint")}>
      <IsolationFacts isolation={isolation} />
    </Card>
  );
}

/** The effective isolation of a server or an environment, one row per value. */
export function IsolationFacts({ isolation }: { isolation: Record<string, unknown> }) {
  const { t } = useTranslation();
  const name = (key: string) =>
    key in NAMES ? t(`overview.isolationKeys.${key as Known}`) : sentence(key.replaceAll("_", " "));
  const keys = [...KNOWN.filter((key) => key in isolation), ...Object.keys(isolation).filter((key) => !(key in NAMES))];
  return <Facts facts={keys.map((key) => [name(key), <Value key={key} value={readable(key, isolation[key], t)} />])} />;
}

/** What a person reads of a fact; what is not known here stays as it is. */
export function readable(key: string, value: unknown, t: TFunction): unknown {
  if ((key === "memory" || key === "disk") && typeof value === "number") return binaryBytes(value);
  if (key === "network" && (value === "egress" || value === "none" || value === "host"))
    return t(`form.networks.${value}`);
  if (key === "disk_enforced_by") {
    const keeper = KEEPERS.find(([sign]) => String(value).includes(sign));
    return keeper ? t(`overview.diskKeepers.${keeper[1]}`) : value;
  }
  if (key === "mount_flags" && typeof value === "object" && value !== null)
    return Object.entries(value).map(([path, flags]) => `${path}: ${(flags as string[]).join(", ")}`);
  if (key === "mounts" && Array.isArray(value)) return value.map((mount) => mountWords(mount as Mount, t));
  return value;
}

/** By what the daemon's words for who keeps the disk limit are known. */
const KEEPERS = [
  ["tmpfs", "nothing"],
  ["quota", "quota"],
  ["a watch", "watch"],
] as const;

type Mount = { type?: string; path?: string; writable?: boolean; source?: string; size?: string };

function mountWords({ type, path = "", writable, source, size }: Mount, t: TFunction): string {
  const place = writable === false ? t("overview.mountReadOnly", { path }) : path;
  const room = size && /^\d+$/.test(size) ? binaryBytes(Number(size)) : size;
  return `${place} ← ${[type, source, room].filter(Boolean).join(" ")}`;
}

/** Long lists fold: a process of root has every capability. */
function Value({ value }: { value: unknown }): ReactNode {
  const { t } = useTranslation();
  if (value === null || value === undefined) return <span className="text-soft">{t("common.unknown")}</span>;
  if (typeof value === "boolean") return t(value ? "common.yes" : "common.no");
  if (Array.isArray(value)) return <List words={value.map(String)} />;
  if (typeof value === "object") return <code>{JSON.stringify(value)}</code>;
  return value === "not enforced" ? (
    <span className="text-warn">{t("overview.notEnforced")}</span>
  ) : (
    String(value as string | number)
  );
}

function List({ words }: { words: string[] }) {
  const { t } = useTranslation();
  if (words.length === 0) return t("common.none");
  if (words.some((word) => word.includes(" "))) {
    return (
      <ul>
        {words.map((word) => (
          <li key={word}>{word}</li>
        ))}
      </ul>
    );
  }
  if (words.length <= 4) return words.join(", ");
  return (
    <details>
      <summary>{words.length}</summary>
      <span className="text-sm text-soft">{words.join(", ")}</span>
    </details>
  );
}
