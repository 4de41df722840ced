import { QueryClientProvider } from "@tanstack/react-query";
import { fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { queryClient } from "../../api/queries";
import type { ServerView } from "../../api/schema";
import { serverView } from "../../test/server";
import { QueueNote } from "./queue-note";

const QUEUED = { queue: { waiting: 1, waited: 3, longest_wait_ms: 4200 }, max_in_flight_effective: 1 };

function show(part: Partial<ServerView>) {
  const server = serverView(part);
  render(
    <QueryClientProvider client={queryClient}>
      <QueueNote server={server} />
    </QueryClientProvider>,
  );
}
afterEach(() => vi.unstubAllGlobals());

test("a server whose calls waited for one another is offered several at once", async () => {
  const sent: unknown[] = [];
  vi.stubGlobal("fetch", async (_path: string, init?: RequestInit) => {
    if (init?.method === "PATCH") sent.push(JSON.parse(String(init.body)));
    return Response.json({});
  });
  show({ ...QUEUED, max_in_flight: null });
  expect(screen.getByRole("note").textContent).toContain("3 calls waited for others, the longest for 4,200 ms");
  fireEvent.click(screen.getByRole("button", { name: "Set to auto" }));
  await waitFor(() => expect(sent).toEqual([{ max_in_flight: "auto" }]));
});

test.each<[string, Partial<ServerView>]>([
  ["a call waited for a moment", { ...QUEUED, queue: { waiting: 0, waited: 1, longest_wait_ms: 20 } }],
  ["it does not run", { ...QUEUED, queue: null }],
  ["it is auto already", { ...QUEUED, max_in_flight: "auto" }],
  ["it is given several", { ...QUEUED, max_in_flight: 4, max_in_flight_effective: 4 }],
])("nothing is suggested if %s", (_why, part) => {
  show(part);
  expect(screen.queryByRole("note")).toBeNull();
});
