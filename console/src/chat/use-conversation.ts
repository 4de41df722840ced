// Follows one conversation: reads it, then hears what comes. A page that was reloaded and a second
// tab see the same as the page that asked.
import { useCallback, useEffect, useState } from "react";
import { API, ApiFailure } from "../api/client";
import { connection } from "../api/connection";
import { followStream } from "../api/event-stream";
import type { SseMessage } from "../api/sse";
import { conversationPath, readConversation, readEarlier, refreshConversations } from "./api";
import { type LiveConversation, applyAll, begin } from "./conversation";
import type { ChatEvent } from "./types";

/** How long events are gathered before they are drawn. */
const FRAME_MS = 30;

export type Feed = {
  id: string | null;
  conversation: LiveConversation | null;
  failure: unknown;
  deleted: boolean;
  /** The last text that was finished while somebody listened. */
  said: { text: string; n: number };
};

const NOTHING: Feed = { id: null, conversation: null, failure: null, deleted: false, said: { text: "", n: 0 } };

export function useConversation(id: string | null) {
  const [feed, setFeed] = useState<Feed>(NOTHING);
  const [round, setRound] = useState(0);
  useEffect(() => (id === null ? undefined : follow(id, setFeed)), [id, round]);
  const retry = useCallback(() => setRound((current) => current + 1), []);
  const showEarlier = useCallback(async () => {
    const first = feed.conversation?.messages[0];
    if (!first || id === null) return;
    const page = await readEarlier(id, first.id);
    setFeed((current) => withEarlier(current, id, page));
  }, [feed.conversation, id]);
  // What belongs to the conversation before is not shown under the new address.
  return { feed: feed.id === id ? feed : { ...NOTHING, id }, retry, showEarlier };
}

function withEarlier(
  feed: Feed,
  id: string,
  page: { earlier?: boolean; messages: LiveConversation["messages"] },
): Feed {
  if (feed.id !== id || !feed.conversation) return feed;
  const known = new Set(feed.conversation.messages.map((message) => message.id));
  const messages = [...page.messages.filter((message) => !known.has(message.id)), ...feed.conversation.messages];
  return { ...feed, conversation: { ...feed.conversation, earlier: page.earlier ?? false, messages } };
}

type SetFeed = (change: (feed: Feed) => Feed) => void;

/** Until the returned function is called. */
function follow(id: string, setFeed: SetFeed): () => void {
  const end = new AbortController();
  let stream = new AbortController();
  let lastId: string | null = null;
  let queue: ChatEvent[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  let failed = false;

  const draw = () => {
    timer = undefined;
    const events = queue;
    queue = [];
    setFeed((feed) => receive(feed, id, events));
  };
  const hear = (message: SseMessage) => {
    if (message.id) lastId = message.id;
    if (message.event === "reset") return void load();
    if (message.event === "conversationDeleted") {
      stream.abort();
      void refreshConversations();
      return setFeed((feed) => ({ ...feed, deleted: true }));
    }
    const event = parse(message);
    if (!event) return;
    if (CHANGES_LIST.has(event.event)) void refreshConversations();
    queue.push(event);
    timer ??= setTimeout(draw, FRAME_MS);
  };
  const listen = () => {
    stream.abort();
    // A browser opens few connections to one address: a tab that nobody looks at takes none.
    if (end.signal.aborted || lastId === null || document.visibilityState === "hidden") return;
    stream = new AbortController();
    const { signal } = stream;
    void followStream({
      url: `${API}${conversationPath(id)}/events`,
      signal,
      after: lastId,
      onOpen: () => {},
      onMessage: (message) => signal.aborted || hear(message),
      onAway: () => {},
      onRefused: (failure) => signal.aborted || setFeed((feed) => ({ ...feed, deleted: failure.kind === "not_found" })),
    });
  };
  const load = async () => {
    stream.abort();
    lastId = null;
    queue = [];
    failed = false;
    try {
      const conversation = await readConversation(id, end.signal);
      lastId = conversation.last_event_id;
      setFeed((feed) => ({
        ...(feed.id === id ? feed : NOTHING),
        id,
        conversation: begin(conversation),
        failure: null,
      }));
      listen();
    } catch (failure) {
      if (end.signal.aborted) return;
      failed = true;
      const deleted = failure instanceof ApiFailure && (failure.kind === "not_found" || failure.status === 422);
      setFeed((feed) => ({ ...(feed.id === id ? feed : NOTHING), id, failure, deleted }));
    }
  };
  void load();
  document.addEventListener("visibilitychange", listen, { signal: end.signal });
  // The daemon may have been away when it was asked.
  const forget = connection.subscribe(() => {
    if (failed && connection.get() === "live") void load();
  });
  return () => {
    forget();
    end.abort();
    stream.abort();
    clearTimeout(timer);
  };
}

/** What the list of conversations shows too. */
const CHANGES_LIST = new Set(["turnStarted", "turnFinished", "conversationChanged"]);

function receive(feed: Feed, id: string, events: ChatEvent[]): Feed {
  if (feed.id !== id || !feed.conversation) return feed;
  const finished = events.findLast(({ event, data }) => event === "messageFinished" && data.text.trim() !== "");
  const said = finished?.event === "messageFinished" ? { text: finished.data.text, n: feed.said.n + 1 } : feed.said;
  return { ...feed, said, conversation: applyAll(feed.conversation, events) };
}

function parse({ id, event, data }: SseMessage): ChatEvent | null {
  try {
    return { id, event, data: JSON.parse(data) } as ChatEvent;
  } catch {
    return null;
  }
}
