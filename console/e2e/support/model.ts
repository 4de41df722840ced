// A language model that says what the test tells it to, over OpenAI's protocol.
import { once } from "node:events";
import { type IncomingMessage, type Server, type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Daemon } from "./daemon";

/** One answer: pieces of text, then calls of tools; or a refusal. */
export type Reply = {
  text?: string[];
  calls?: { name: string; arguments?: object }[];
  /** After the first piece of text the answer waits for this. */
  hold?: Promise<unknown>;
  status?: number;
  error?: { message: string; type?: string; code?: string };
};

export const KEY = "sk-test-0123456789abcdef";

/** A door that the test opens. */
export function gate(): { opened: Promise<void>; open: () => void } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open };
}

export class Model {
  /** What it was asked, oldest first. */
  readonly requests: { messages: any[]; tools?: any[]; model: string }[] = [];
  private readonly server: Server;
  private queue: Reply[] = [];
  /** What it says when nothing is left to say. */
  otherwise: Reply = { text: ["That is all."] };

  private constructor() {
    this.server = createServer((request, response) => {
      this.serve(request, response).catch(() => response.destroy());
    });
  }

  static async start(): Promise<Model> {
    const model = new Model();
    model.server.listen(0, "127.0.0.1");
    await once(model.server, "listening");
    return model;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/v1/`;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, "close");
  }

  /** What it answers next, in order. */
  says(...replies: Reply[]): void {
    this.queue.push(...replies);
  }

  /** Makes it the daemon's model. */
  async setUp(daemon: Daemon): Promise<void> {
    await daemon.ask("PUT", "/chat/providers/test", {
      kind: "openai",
      name: "Test",
      base_url: this.url,
      api_key: KEY,
      default_model: "test-model",
      is_default: true,
    });
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const json = (status: number, body: unknown) => {
      response.writeHead(status, { "Content-Type": "application/json" });
      response.end(JSON.stringify(body));
    };
    if (request.headers.authorization !== `Bearer ${KEY}`)
      return json(401, {
        error: { message: "Incorrect API key provided", type: "invalid_request_error", code: "invalid_api_key" },
      });
    if (request.url?.endsWith("/models"))
      return json(200, { object: "list", data: ["test-model", "other-model"].map((id) => ({ id, object: "model" })) });
    let body = "";
    for await (const chunk of request.setEncoding("utf8")) body += chunk;
    this.requests.push(JSON.parse(body));
    const reply = this.queue.shift() ?? this.otherwise;
    if (reply.status) return json(reply.status, { error: reply.error ?? { message: "no" } });
    await stream(response, reply, JSON.parse(body).stream === true);
  }
}

async function stream(response: ServerResponse, reply: Reply, streamed: boolean): Promise<void> {
  const id = "chatcmpl-test";
  const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
  const calls = (reply.calls ?? []).map((call, index) => ({
    index,
    id: `call_${Math.random().toString(36).slice(2)}`,
    type: "function",
    function: { name: call.name, arguments: JSON.stringify(call.arguments ?? {}) },
  }));
  const end = calls.length > 0 ? "tool_calls" : "stop";
  if (!streamed) {
    const message = {
      role: "assistant",
      content: (reply.text ?? []).join(""),
      ...(calls.length ? { tool_calls: calls } : {}),
    };
    response.writeHead(200, { "Content-Type": "application/json" });
    response.end(
      JSON.stringify({
        id,
        object: "chat.completion",
        model: "test-model",
        usage,
        choices: [{ index: 0, message, finish_reason: end }],
      }),
    );
    return;
  }
  response.writeHead(200, { "Content-Type": "text/event-stream" });
  const send = (delta: object, finish: string | null = null, more: object = {}) =>
    response.write(
      `data: ${JSON.stringify({ id, object: "chat.completion.chunk", model: "test-model", choices: [{ index: 0, delta, finish_reason: finish }], ...more })}\n\n`,
    );
  send({ role: "assistant", content: "" });
  for (const [index, piece] of (reply.text ?? []).entries()) {
    send({ content: piece });
    if (index === 0) await reply.hold;
  }
  if (!reply.text?.length) await reply.hold;
  // Arguments come in pieces, as models send them.
  for (const call of calls) {
    const { arguments: text, name } = call.function;
    const half = Math.ceil(text.length / 2);
    send({ tool_calls: [{ ...call, function: { name, arguments: text.slice(0, half) } }] });
    send({ tool_calls: [{ index: call.index, function: { arguments: text.slice(half) } }] });
  }
  send({}, end, { usage });
  response.end("data: [DONE]\n\n");
}
