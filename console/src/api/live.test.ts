import { beforeEach, expect, test, vi } from "vitest";
import { serverView } from "../test/server";
import { lastChange, refreshServersSoon, serverRemoved, statusChanged } from "./live";
import { noteHeard, noteWanted, overlaid } from "./overlay";
import { queryClient, serversQuery } from "./queries";
import type { StatusChange } from "./schema";

const change = (part: Partial<StatusChange>): StatusChange => ({
  id: "a",
  name: "a",
  status: "ready",
  previous_status: "starting",
  generation: 1,
  at: "2026-01-01T00:00:00Z",
  ...part,
});

beforeEach(() => {
  vi.spyOn(queryClient, "invalidateQueries").mockResolvedValue();
  queryClient.setQueryData(serversQuery.queryKey, [
    serverView({ name: "a", status: "starting" }),
    serverView({ name: "b", status: "stopped" }),
  ]);
});

const statuses = () => queryClient.getQueryData(serversQuery.queryKey)?.map(({ status }) => status);

test("an event changes its server at once, and no other", () => {
  // covers: MGR-27, MGR-29
  statusChanged(change({}));
  expect(statuses()).toEqual(["ready", "stopped"]);
  expect(lastChange.get()?.name).toBe("a");
});

test("a failure comes with its reason", () => {
  // covers: MGR-14
  const error = { kind: "exited_early", message: "it exited", hint: "", stderr: "boom" } as const;
  statusChanged(change({ status: "error", error }));
  const [server] = queryClient.getQueryData(serversQuery.queryKey)!;
  expect(server).toMatchObject({ status: "error", error });
});

test("an answer that was asked for before an event does not undo it", () => {
  const askedAt = performance.now() - 1;
  noteHeard("c", "ready", null);
  const old = serverView({ name: "c", status: "starting" });
  expect(overlaid(old, askedAt).status).toBe("ready");
  expect(overlaid(old, performance.now() + 1).status).toBe("starting");
});

test("what a switch asked for is shown until the daemon has answered", () => {
  const server = serverView({ name: "d", status: "stopped", enabled: false });
  noteWanted("d", { status: "starting", enabled: true });
  expect(overlaid(server, performance.now())).toMatchObject({ status: "starting", enabled: true });
  noteWanted("d", null);
  expect(overlaid(server, performance.now())).toMatchObject({ status: "stopped", enabled: false });
});

test("a server that somebody removes is off the list at once", () => {
  serverRemoved({ id: "a", name: "a", generation: 2, at: "2026-01-01T00:00:00Z" });
  expect(queryClient.getQueryData(serversQuery.queryKey)?.map(({ name }) => name)).toEqual(["b"]);
});

test("a server that somebody adds or changes is asked for, once for many events", async () => {
  const asked = vi.mocked(queryClient.invalidateQueries).mockClear();
  refreshServersSoon();
  refreshServersSoon();
  await vi.waitFor(() => expect(asked).toHaveBeenCalledWith({ queryKey: ["server"] }));
  expect(asked.mock.calls.filter(([filter]) => filter?.queryKey?.[0] === "servers")).toHaveLength(1);
});

test("the list of servers is not asked for again and again: events tell of every change", () => {
  expect(serversQuery.refetchInterval).toBeUndefined();
});
