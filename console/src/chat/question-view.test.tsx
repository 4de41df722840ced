import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, expect, test, vi } from "vitest";
import { toolCall } from "../test/chat";
import { OpenQuestions } from "./question-view";
import { ToolCard } from "./tool-card";
import type { Question } from "./types";

afterEach(() => vi.unstubAllGlobals());

/** A running call, with this question on its card; gives back what is sent. */
function asked(question: object): { url: string; body: unknown }[] {
  const call = toolCall(1, { status: "running", result: null });
  const open = [{ id: "q", call_id: call.call_id, server: "fs", ...question } as Question];
  const sent: { url: string; body: unknown }[] = [];
  vi.stubGlobal("fetch", (url: string, init: RequestInit) => {
    sent.push({ url, body: JSON.parse(init.body as string) });
    return Promise.resolve(new Response(null, { status: 204 }));
  });
  render(
    <QueryClientProvider client={new QueryClient()}>
      <OpenQuestions value={open}>
        <ToolCard conversation="c" call={call} />
        <ToolCard conversation="c" call={toolCall(2, { status: "running" })} />
      </OpenQuestions>
    </QueryClientProvider>,
  );
  return sent;
}

const button = (name: string) => screen.getByRole<HTMLButtonElement>("button", { name });
const url = "/api/v1/chat/conversations/c/questions/q";

test("a form begins with its defaults and is sent once it is right", async () => {
  const schema = {
    type: "object",
    required: ["name"],
    properties: { name: { type: "string", minLength: 1 }, age: { type: "integer", default: 30 } },
  };
  const sent = asked({ wish: "form", message: "Who are you?", schema });
  expect(screen.getAllByRole("region", { name: "Question from fs" })).toHaveLength(1);
  expect(screen.getByText("Who are you?")).toBeTruthy();
  await userEvent.click(button("Answer"));
  expect(sent).toEqual([]);
  await userEvent.type(screen.getByRole("textbox", { name: "name" }), "Ada{Enter}");
  expect(sent).toEqual([{ url, body: { action: "accept", content: { name: "Ada", age: 30 } } }]);
  // It is answered once, and waits to be taken away.
  await vi.waitFor(() => expect(button("Decline").disabled).toBe(true));
});

test("a page is opened by the person, and only then agreed to", async () => {
  const sent = asked({ wish: "url", message: "Sign in", url: "https://example.org/in" });
  const link = screen.getByRole("link", { name: "Open page" });
  expect([link.getAttribute("href"), link.getAttribute("rel")]).toEqual([
    "https://example.org/in",
    "noopener noreferrer",
  ]);
  expect(screen.getByText("https://example.org/in")).toBeTruthy();
  // The page itself is not wanted here.
  document.addEventListener("click", (event) => event.preventDefault(), { once: true });
  await userEvent.click(link);
  expect(sent).toEqual([{ url, body: { action: "accept" } }]);
});

test("the model is asked for a server when that is allowed, and not when it is declined", async () => {
  const wish = { wish: "sampling", system: "Be brief", messages: [{ role: "user", text: "Name a colour" }] };
  const sent = asked(wish);
  expect(screen.getByLabelText("What the model would be asked").textContent).toBe("Be brief\n\nName a colour");
  await userEvent.click(button("Decline"));
  expect(sent).toEqual([{ url, body: { action: "decline" } }]);
});
