import { QueryClientProvider } from "@tanstack/react-query";
import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, expect, test, vi } from "vitest";
import { queryClient } from "../api/queries";
import type { SecretView } from "../api/schema";
import { Secrets } from "./secrets";

const secret = (part: Partial<SecretView>): SecretView => ({
  name: "API_KEY",
  reference: "env://API_KEY",
  state: "pending",
  ...part,
});

function show(secrets: SecretView[]) {
  render(
    <QueryClientProvider client={queryClient}>
      <Secrets repository="/r" secrets={secrets} />
    </QueryClientProvider>,
  );
}

afterEach(() => void vi.unstubAllGlobals());

test("a repository without secrets shows nothing", () => {
  show([]);
  expect(screen.queryByRole("note")).toBeNull();
});

test("a secret is shown with the file that it reads, and allowed as it was shown", async () => {
  const sent = vi.fn(async () => new Response(JSON.stringify({ secrets: [] }), { status: 200 }));
  vi.stubGlobal("fetch", sent);
  show([secret({ name: "CERT", reference: "file://cert", file: "/home/me/.ssh/id_rsa", state: "changed" })]);
  screen.getByRole("note", { name: "Secrets of /r" });
  screen.getByText("the file /home/me/.ssh/id_rsa", { exact: false });
  screen.getByText("(changed, not allowed)", { exact: false });
  await userEvent.click(screen.getByRole("button", { name: "Allow CERT" }));
  const [path, options] = sent.mock.calls[0] as unknown as [string, RequestInit];
  expect(String(path)).toContain("/repositories/secrets");
  expect(JSON.parse(String(options.body))).toEqual({
    repository: "/r",
    name: "CERT",
    reference: "file://cert",
    allow: true,
  });
});

test("an allowed secret is revoked, and a failure is shown", async () => {
  const failed = { error: { kind: "conflict", message: "it has changed", hint: "look again" } };
  vi.stubGlobal(
    "fetch",
    vi.fn(async () => new Response(JSON.stringify(failed), { status: 409 })),
  );
  show([secret({ state: "allowed" })]);
  await userEvent.click(screen.getByRole("button", { name: "Revoke API_KEY" }));
  await screen.findByText("Could not save the decision");
});
