// The state of the form: the draft, which fields were left, what is wrong, and saving.
import { type FormEvent, useCallback, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { useSave } from "../../api/actions";
import { ApiFailure } from "../../api/client";
import type { ServerView } from "../../api/schema";
import { type Checked, type Problems, checkLocally, readRefusal } from "./check";
import { type Draft, bodyOf } from "./draft";
import { afterPress } from "../../ui/press";
import { isSwitchedOffByFailure } from "../status";
import { useCheck } from "./use-check";

export type ServerForm = {
  draft: Draft;
  edited: ServerView | null;
  /** Something was typed that is not saved. */
  dirty: boolean;
  change: (part: Partial<Draft>) => void;
  /** A field was left: from now on it says what is wrong with it. */
  leave: (field: string) => void;
  problem: (field: string) => string | undefined;
  checked: Checked;
  /** Saves, and starts a server that a failed start switched off. */
  submit: (event: FormEvent<HTMLFormElement>) => void;
  /** Whether `submit` starts the server. */
  starts: boolean;
  /** Saves with the switch as the form has it. */
  saveOnly: (form: HTMLFormElement) => void;
  saving: boolean;
  /** Why it could not be saved, where no single field is to blame. */
  failure: unknown;
};

type Options = {
  initial: Draft;
  edited: ServerView | null;
  onSaved: (server: ServerView) => void;
  onDraft?: (draft: Draft) => void;
};

export function useServerForm({ initial, edited, onSaved, onDraft }: Options): ServerForm {
  const { t } = useTranslation();
  const [draft, setDraft] = useState(initial);
  const [first] = useState(initial);
  const [left, setLeft] = useState<ReadonlySet<string>>(new Set());
  const [tried, setTried] = useState(false);
  const [refused, setRefused] = useState<Problems>({});
  const checked = useCheck(draft, edited?.name ?? null);
  const save = useSave();
  const local = useMemo(() => checkLocally(draft, t), [draft, t]);

  const change = (part: Partial<Draft>) => {
    const next = { ...draft, ...part };
    setDraft(next);
    setRefused({});
    save.reset();
    onDraft?.(next);
  };
  const leave = useCallback((field: string) => afterPress(() => setLeft((fields) => new Set(fields).add(field))), []);
  const problem = (field: string) => {
    if (refused[field]) return refused[field];
    if (!tried && !left.has(field)) return undefined;
    return local[field] ?? checked.problems[field] ?? checked.mild[field];
  };
  const formElement = useRef<HTMLFormElement | null>(null);
  const starts = edited !== null && isSwitchedOffByFailure(edited);
  const attempt = (form: HTMLFormElement, wanted: Draft) => {
    formElement.current = form;
    setTried(true);
    if (Object.keys(local).length > 0) return focusFirstProblem(form);
    if (save.isPending) return;
    save.mutate(
      { id: edited?.id ?? null, body: edited ? bodyOf(wanted) : withoutNulls(bodyOf(wanted)) },
      { onSuccess: onSaved, onError: (error) => setRefused(refusalOf(error)) },
    );
  };
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    attempt(event.currentTarget, starts ? { ...draft, enabled: true } : draft);
  };
  const saveOnly = (form: HTMLFormElement) => attempt(form, draft);
  const refusalOf = (error: unknown): Problems => {
    focusFirstProblem(formElement.current);
    if (!(error instanceof ApiFailure)) return {};
    if (error.kind === "conflict" && error.fields.length === 0)
      return { name: t("form.messages.nameTaken", { name: draft.name.trim() }) };
    return readRefusal(error.fields, draft, t);
  };
  const failure = save.isError && Object.keys(refused).length === 0 ? save.error : null;
  const dirty = !save.isSuccess && JSON.stringify(draft) !== JSON.stringify(first);
  return {
    draft,
    edited,
    dirty,
    change,
    leave,
    problem,
    checked,
    submit,
    starts,
    saveOnly,
    saving: save.isPending,
    failure,
  };
}

/** A new server leaves out what it does not ask for. */
function withoutNulls(body: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null));
}

/** After the next paint, when the marks are there. */
function focusFirstProblem(form: HTMLFormElement | null): void {
  setTimeout(() => {
    const wrong = form?.querySelector<HTMLElement>("[aria-invalid=true]");
    wrong?.closest("details")?.setAttribute("open", "");
    wrong?.focus();
  }, 30);
}
