// Servers that run but need a person: crash loops, silence and health warnings.
import type { TFunction } from "i18next";
import type { ServerView } from "../api/schema";
import { warningWords } from "./form/check";

type Observed = Pick<ServerView, "status" | "health" | "health_reasons">;

/** A failed server is not among them: its status word and its error say so already. */
export function needsAttention({ status, health, health_reasons }: Observed): boolean {
  return status === "unresponsive" || health === "warning" || health_reasons.length > 0;
}

const CRASH_LOOP = /^it crashes again and again; a restart waits for (\d+) s$/;
const SILENCE = /^it did not answer a heartbeat within (\d+) ms$/;

/** A health reason of the daemon in the reader's language, if it is known in both. */
export function reasonWords(reason: string, t: TFunction): string {
  const loop = CRASH_LOOP.exec(reason);
  if (loop) return t("health.crashLoop", { seconds: loop[1] ?? "" });
  const silence = SILENCE.exec(reason);
  if (silence) return t("health.silent", { ms: silence[1] ?? "" });
  return warningWords(reason, t);
}

/** The state in a word or two. */
export function attentionWord({ status, health_reasons }: Observed, t: TFunction): string {
  if (status === "unresponsive") return t("status.unresponsive");
  return t(health_reasons.some((reason) => CRASH_LOOP.test(reason)) ? "health.loop" : "health.warning");
}
