// One open conversation and all that can be done in it.
import { useQuery } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { useLocation } from "wouter";
import { useAway } from "../api/connection";
import { providersQuery } from "./api";
import type { ComposerHandle } from "./composer";
import { type Choice, NEW, changeDraft, chosen, useDraft } from "./draft";
import type { GoOn } from "./message-view";
import { useConversation } from "./use-conversation";
import { useTurn } from "./use-turn";

export function useChat(id: string | null) {
  const [, navigate] = useLocation();
  const away = useAway();
  const providers = useQuery(providersQuery);
  const { feed, retry, showEarlier } = useConversation(id);
  const key = id ?? NEW;
  const draft = useDraft(key);
  const choice = chosen(draft.choice, feed.conversation, providers.data);
  const turn = useTurn(id, choice);
  const composer = useRef<ComposerHandle>(null);
  // The conversation that was begun here, whose address is new and whose page is not.
  const [begun, setBegun] = useState<string | null>(null);
  const [sent, setSent] = useState(0);

  /** The button that was pressed may be gone afterwards. */
  const focus = () => composer.current?.focus();
  const send = async () => {
    const made = await turn.begin({ message: draft.text });
    if (!made) return;
    changeDraft(key, { text: "" });
    focus();
    setSent((count) => count + 1);
    if (made === id) return;
    setBegun(made);
    navigate(`/chat/${made}`);
  };
  const goOn: GoOn = {
    disabled: turn.busy || away,
    onContinue: () => void turn.begin({ action: "continue" }).then(focus),
    onAnswerNow: () => void turn.begin({ action: "answer_now" }).then(focus),
  };
  return {
    id,
    away,
    providers,
    feed,
    retry,
    showEarlier,
    text: draft.text,
    write: (text: string) => changeDraft(key, { text }),
    choice,
    choose: (change: Choice) => changeDraft(key, { choice: { ...draft.choice, ...change } }),
    busy: turn.busy,
    send,
    stop: () => void turn.stop().then(focus),
    goOn,
    composer,
    sent,
    /** Changes when another conversation was chosen: the focus then goes to its title. */
    titleKey: id === begun ? NEW : key,
  };
}

export type OpenChat = ReturnType<typeof useChat>;
