// What is wrong with a draft: found here at once where that is possible, and by the daemon for
// the rest. The daemon's word is the last.
import type { TFunction } from "i18next";
import type { FieldError, Validation } from "../../api/schema";
import type { Draft } from "./draft";

/** Messages by field; `field` is a path as the daemon names it. */
export type Problems = Partial<Record<string, string>>;

export type Checked = {
  problems: Problems;
  /** Those that do not keep it from being saved: it would fail when it is started. */
  mild: Problems;
  /** Names of variables and arguments that look like secrets. */
  secrets: string[];
  warnings: string[];
};

export const NOTHING: Checked = { problems: {}, mild: {}, secrets: [], warnings: [] };

/** What can be told without asking. */
export function checkLocally(draft: Draft, t: TFunction): Problems {
  const problems: Problems = {};
  if (!draft.name.trim()) problems.name = t("form.messages.nameRequired");
  if (draft.kind === "process" && !draft.command.trim()) problems.command = t("form.messages.commandRequired");
  if (draft.kind === "container" && !draft.image.trim()) problems.image = t("form.messages.imageRequired");
  if (draft.kind === "remote") Object.assign(problems, checkUrl(draft.url.trim(), t));
  for (const key of ["callTimeout", "startTimeout", "heartbeatInterval", "heartbeatTimeout", "pids"] as const) {
    if (!/^\s*\d*\s*$/.test(draft[key])) problems[FIELDS[key]] = t("form.messages.number");
  }
  if (!/^\s*(\d*|auto)\s*$/.test(draft.maxInFlight)) problems.max_in_flight = t("form.messages.inFlight");
  checkRows(draft, draft.kind === "remote" ? "headers" : "env", problems, t);
  if (draft.kind === "container") checkPorts(draft, problems, t);
  return problems;
}

const FIELDS = {
  callTimeout: "call_timeout_ms",
  startTimeout: "start_timeout_ms",
  heartbeatInterval: "heartbeat.interval_ms",
  heartbeatTimeout: "heartbeat.timeout_ms",
  pids: "resource_limits.pids",
} as const;

function checkUrl(url: string, t: TFunction): Problems {
  if (!url) return { url: t("form.messages.urlRequired") };
  return /^https?:\/\/[^\s/]+/i.test(url) && URL.canParse(url) ? {} : { url: t("form.messages.urlWrong") };
}

function checkRows(draft: Draft, of: "env" | "headers", problems: Problems, t: TFunction): void {
  const seen = new Set<string>();
  draft[of].forEach(({ name, value }, index) => {
    // The case of a header's name means nothing.
    const key = of === "headers" ? name.trim().toLowerCase() : name.trim();
    if (!key && value) problems[`${of}.${index}`] = t(`form.messages.${of}NameRequired`);
    if (key && seen.has(key)) problems[`${of}.${index}`] = t("form.messages.envNameTwice");
    seen.add(key);
  });
}

function checkPorts(draft: Draft, problems: Problems, t: TFunction): void {
  draft.ports.forEach(({ container, host }, index) => {
    const wrong = (text: string, least: number) =>
      text.trim() !== "" && !(/^\d+$/.test(text.trim()) && Number(text) >= least && Number(text) <= 65_535);
    if (wrong(container, 1) || wrong(host, 0)) problems[`ports.${index}`] = t("form.messages.port");
  });
}

/** The daemon's answer in the words and places of the form. `self` is the name of the edited server. */
export function readValidation(validation: Validation, draft: Draft, self: string | null, t: TFunction): Checked {
  const own = ({ field, message }: FieldError) =>
    self !== null && ((field === "name" && draft.name.trim() === self) || clashesWith(message, self));
  const errors = validation.errors.filter((error) => !own(error));
  const problems: Problems = {};
  const mild: Problems = {};
  for (const error of errors) {
    const into = error.blocking ? problems : mild;
    into[placeOf(error, draft)] ??= translate(error, t);
  }
  const secret = validation.warnings.filter(isSecret);
  return {
    problems,
    mild,
    secrets: secret.map(({ message }) => secretName(message, t) ?? message),
    warnings: validation.warnings.filter((warning) => !isSecret(warning)).map(({ message }) => message),
  };
}

const CLASH = /^The (prefix|name) “(.*)” is in use (?:by|as the prefix of) server “(.*)”$/s;
/** The daemon does not know which server is edited: while that is renamed, it clashes with itself. */
const clashesWith = (message: string, server: string) => CLASH.exec(message)?.[3] === server;

const SECRET = /^(?:(?:the header )?`(.*)`|argument (\d+)) looks like a secret: it is stored in plain text/s;
const isSecret = ({ message }: FieldError) => SECRET.test(message);

/** What it is that looks like a secret: the name of a variable or a header, or an argument. */
function secretName(message: string, t: TFunction): string | null {
  const found = SECRET.exec(message);
  return found ? (found[1] ?? t("form.secretArgument", { n: found[2]! })) : null;
}

/** A warning of the daemon in the reader's language, where it is known in both. */
export function warningWords(message: string, t: TFunction): string {
  const names = secretName(message, t);
  if (names !== null) return t("form.secretText", { names, count: 1 });
  return message.startsWith("plain http:") ? t("form.plainHttp") : message;
}

/** Fields that the daemon refused on saving. */
export function readRefusal(fields: readonly FieldError[], draft: Draft, t: TFunction): Problems {
  const problems: Problems = {};
  for (const field of fields) problems[placeOf(field, draft)] ??= translate(field, t);
  return problems;
}

/** The form's own key for a field: rows of the environment and headers are found by their name. */
function placeOf({ field }: FieldError, draft: Draft): string {
  for (const [prefix, of] of [
    ["environment", "env"],
    ["headers", "headers"],
  ] as const) {
    if (!field.startsWith(`${prefix}.`)) continue;
    const index = draft[of].findIndex(({ name }) => name.trim() === field.slice(prefix.length + 1));
    return index < 0 ? prefix : `${of}.${index}`;
  }
  const port = /^ports\[?\.?(\d+)/.exec(field);
  if (port) return `ports.${port[1]}`;
  return field.replace(/\[\d+\].*$/, "");
}

/** The daemon speaks English; the sentences that people meet most are known in both languages. */
export function translate({ message }: FieldError, t: TFunction): string {
  if (message === "Name is required") return t("form.messages.nameRequired");
  if (message === "Command is required") return t("form.messages.commandRequired");
  const taken = /^A server named “(.*)” already exists$/s.exec(message);
  if (taken) return t("form.messages.nameTaken", { name: taken[1]! });
  const clash = CLASH.exec(message);
  if (clash) {
    const words = { value: clash[2]!, server: clash[3]! };
    return clash[1] === "prefix" ? t("form.messages.prefixTaken", words) : t("form.messages.nameIsPrefix", words);
  }
  const missing = /^Command “(.*)” was not found on PATH$/s.exec(message);
  if (missing) return t("form.messages.commandNotFound", { command: missing[1]! });
  return message;
}
