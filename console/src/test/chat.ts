// Conversations for tests, with what matters given.
import type { AssistantMessage, ChatEvent, ChatEvents, Conversation, ToolCall, UserMessage } from "../chat/types";

export function conversation(part: Partial<Conversation> = {}): Conversation {
  return {
    id: "c",
    title: "a chat",
    provider: "openai",
    model: "m",
    servers: null,
    tools_off: [],
    running: false,
    turn_id: null,
    message_count: 0,
    created_at: "2026-01-01T00:00:00Z",
    updated_at: "2026-01-01T00:00:00Z",
    last_event_id: "100",
    can_continue: false,
    earlier: false,
    questions: [],
    messages: [],
    ...part,
  };
}

export const question = (id: string, text = "why?"): UserMessage => ({
  id,
  turn_id: "t",
  role: "user",
  at: "2026-01-01T00:00:00Z",
  text,
});

export const answer = (id: string, part: Partial<AssistantMessage> = {}): AssistantMessage => ({
  id,
  turn_id: "t",
  role: "assistant",
  at: "2026-01-01T00:00:00Z",
  step: 1,
  state: "complete",
  text: "",
  tool_calls: [],
  ...part,
});

export const toolCall = (n: number, part: Partial<ToolCall> = {}): ToolCall => ({
  call_id: `call-${n}`,
  n,
  server: "fs",
  tool: "read_file",
  title: null,
  arguments: { path: "/a" },
  status: "done",
  outcome: "ok",
  result: { content: [{ type: "text", text: "file text" }] },
  result_bytes: 40,
  truncated: false,
  error: null,
  started_at: "2026-01-01T00:00:00Z",
  duration_ms: 12.5,
  recorded: true,
  ...part,
});

/** An event of turn `t`, with an id. */
export function event<Name extends keyof ChatEvents>(
  id: number,
  name: Name,
  data: Omit<ChatEvents[Name], "conversation_id" | "turn_id">,
): ChatEvent {
  return { id: String(id), event: name, data: { conversation_id: "c", turn_id: "t", ...data } } as unknown as ChatEvent;
}
