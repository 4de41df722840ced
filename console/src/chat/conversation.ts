// A conversation and what each event makes of it. Pure: a new object for what changed, the same
// one for what did not, so that only what changed is drawn again.
import type { AssistantMessage, ChatEvent, Conversation, Message, Notice, Question, Retrying, ToolCall } from "./types";

/** A conversation as it is shown: what is stored, and what only this moment knows. */
export type LiveConversation = Conversation & { retrying: Retrying | null };

export function begin(conversation: Conversation): LiveConversation {
  return { ...conversation, retrying: null };
}

/** What an event makes of a conversation. One that it knows already changes nothing. */
export function apply(conversation: LiveConversation, message: ChatEvent): LiveConversation {
  if (message.id !== null && !isAfter(message.id, conversation.last_event_id)) return conversation;
  const next = change(conversation, message);
  return message.id === null ? next : { ...next, last_event_id: message.id };
}

export function applyAll(conversation: LiveConversation, messages: readonly ChatEvent[]): LiveConversation {
  return joinDeltas(messages).reduce(apply, conversation);
}

/** Ids are decimal numbers that only grow, perhaps beyond what a number holds exactly. */
export function isAfter(id: string, last: string): boolean {
  return id.length === last.length ? id > last : id.length > last.length;
}

/** Many pieces of the same text become one, so that a fast model costs no more than a slow one. */
function joinDeltas(messages: readonly ChatEvent[]): ChatEvent[] {
  const joined: ChatEvent[] = [];
  for (const message of messages) {
    const last = joined.at(-1);
    if (
      last &&
      (message.event === "textDelta" || message.event === "reasoningDelta") &&
      last.event === message.event &&
      last.data.message_id === message.data.message_id
    ) {
      const data = { ...message.data, delta: last.data.delta + message.data.delta };
      joined[joined.length - 1] = { ...message, data } as ChatEvent;
    } else joined.push(message);
  }
  return joined;
}

function change(conversation: LiveConversation, { event, data }: ChatEvent): LiveConversation {
  switch (event) {
    case "turnStarted":
      return turnStarted(conversation, data);
    case "messageStarted":
      return { ...conversation, retrying: null, messages: added(conversation.messages, emptyAnswer(data)) };
    case "textDelta":
      return withAnswer(conversation, data.message_id, (answer) => ({ ...answer, text: answer.text + data.delta }));
    case "reasoningDelta":
      return withAnswer(conversation, data.message_id, (answer) => ({
        ...answer,
        reasoning: (answer.reasoning ?? "") + data.delta,
      }));
    case "toolCallStarted":
      return withAnswer(conversation, data.message_id, (answer) => ({
        ...answer,
        tool_calls: addedCall(answer.tool_calls, startedCall(data)),
      }));
    case "toolCallFinished":
      return withAnswer(conversation, data.message_id, (answer) => ({
        ...answer,
        tool_calls: finishedCall(answer.tool_calls, data),
      }));
    case "messageFinished":
      return withAnswer(conversation, data.message_id, (answer) => ({ ...answer, state: data.state, text: data.text }));
    case "questionAsked":
      return { ...conversation, questions: [...without(conversation.questions, data.id), data] };
    case "questionClosed":
      return { ...conversation, questions: without(conversation.questions, data.question_id) };
    case "retrying":
      return { ...conversation, retrying: data };
    case "limitReached":
      return withNotice(conversation, data.turn_id, { notice: "limit", steps: data.steps, limit: data.limit });
    case "turnError":
      return withNotice(conversation, data.turn_id, { notice: "error", error: data });
    case "turnFinished":
      return turnFinished(conversation, data);
    case "conversationChanged":
      return { ...conversation, title: data.title };
    default:
      return conversation;
  }
}

type Data<Name extends ChatEvent["event"]> = Extract<ChatEvent, { event: Name }>["data"];

function turnStarted(conversation: LiveConversation, data: Data<"turnStarted">): LiveConversation {
  const { messages } = conversation;
  return {
    ...conversation,
    running: true,
    turn_id: data.turn_id,
    title: data.title,
    provider: data.provider ?? null,
    model: data.model ?? null,
    can_continue: false,
    retrying: null,
    messages: data.message ? added(messages, { ...data.message, role: "user", turn_id: data.turn_id }) : messages,
  };
}

/** What was under way when the turn ended is so no longer. */
function turnFinished(conversation: LiveConversation, data: Data<"turnFinished">): LiveConversation {
  const ended = {
    ...conversation,
    running: false,
    turn_id: null,
    can_continue: data.reason !== "done",
    retrying: null,
    questions: [],
    messages: conversation.messages.map((message) => (message.role === "assistant" ? settled(message) : message)),
  };
  return data.reason === "stopped" ? withNotice(ended, data.turn_id, { notice: "stopped" }) : ended;
}

const without = (questions: Question[], id: string) => questions.filter((question) => question.id !== id);

function settled(answer: AssistantMessage): AssistantMessage {
  const running = answer.tool_calls.some(({ status }) => status === "running");
  if (answer.state !== "streaming" && !running) return answer;
  return {
    ...answer,
    state: answer.state === "streaming" ? "stopped" : answer.state,
    tool_calls: answer.tool_calls.map((call) => (call.status === "running" ? { ...call, status: "cancelled" } : call)),
  };
}

function emptyAnswer(data: Data<"messageStarted">): AssistantMessage {
  const { message_id: id, turn_id, step, at } = data;
  return { id, turn_id, role: "assistant", at, step, state: "streaming", text: "", tool_calls: [] };
}

function startedCall(data: Data<"toolCallStarted">): ToolCall {
  const { call_id, n, server, tool, title, at } = data;
  return {
    call_id,
    n,
    server,
    tool,
    title: title ?? null,
    arguments: data.arguments,
    status: "running",
    result_bytes: 0,
    truncated: false,
    started_at: at,
    recorded: false,
  };
}

function addedCall(calls: ToolCall[], call: ToolCall): ToolCall[] {
  return calls.some(({ call_id }) => call_id === call.call_id) ? calls : [...calls, call];
}

function finishedCall(calls: ToolCall[], data: Data<"toolCallFinished">): ToolCall[] {
  const { status, outcome, result, result_bytes, truncated, error, duration_ms, recorded } = data;
  const finished = { status, outcome, result, result_bytes, truncated, error, duration_ms, recorded };
  return calls.map((call) => (call.call_id === data.call_id ? { ...call, ...finished } : call));
}

function added(messages: Message[], message: Message): Message[] {
  return messages.some(({ id }) => id === message.id) ? messages : [...messages, message];
}

type NoticeBody =
  | { notice: "limit"; steps: number; limit: number }
  | { notice: "error"; error: Extract<Notice, { notice: "error" }>["error"] }
  | { notice: "stopped" };

/** Events give notices no id; a turn has at most one of each sort. It may be known already: it is
 *  stored before the event tells of it, and the conversation may have been read between. */
function withNotice(conversation: LiveConversation, turn: string, body: NoticeBody): LiveConversation {
  const known = conversation.messages.some(
    (message) => message.role === "notice" && message.turn_id === turn && message.notice === body.notice,
  );
  if (known) return { ...conversation, retrying: null };
  const notice = { id: `${turn}:${body.notice}`, turn_id: turn, role: "notice", at: "", ...body } as Notice;
  return { ...conversation, retrying: null, messages: added(conversation.messages, notice) };
}

/** Changes one answer; it is nearly always the last. */
function withAnswer(
  conversation: LiveConversation,
  id: string,
  alter: (answer: AssistantMessage) => AssistantMessage,
): LiveConversation {
  const at = conversation.messages.findLastIndex((message) => message.id === id);
  const answer = conversation.messages[at];
  if (answer?.role !== "assistant") return conversation;
  return { ...conversation, retrying: null, messages: conversation.messages.with(at, alter(answer)) };
}
