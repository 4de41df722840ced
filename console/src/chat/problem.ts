// What went wrong with a model, in the reader's language.
import type { TFunction } from "i18next";
import { en } from "../i18n/en";
import type { ChatProblem } from "./types";

type Kind = keyof typeof en.chat.problems;

/** A kind of a newer daemon is called a failure. */
export function problemWords(problem: ChatProblem, t: TFunction): string {
  return problem.kind in en.chat.problems ? t(`chat.problems.${problem.kind as Kind}`) : t("chat.problems.internal");
}
