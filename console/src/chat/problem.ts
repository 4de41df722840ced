// What went wrong with a model, in the reader's language.
import type { TFunction } from "i18next";
import type { ModelFailure } from "../api/schema";
import { en } from "../i18n/en";

/** A kind of a newer daemon is called a failure. */
export function problemWords(problem: ModelFailure, t: TFunction): string {
  return problem.kind in en.chat.problems ? t(`chat.problems.${problem.kind}`) : t("chat.problems.internal");
}
