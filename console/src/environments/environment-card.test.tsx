import { render, screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test, vi } from "vitest";
import type { EnvironmentCommand, EnvironmentView } from "../api/schema";
import { EnvironmentCard } from "./environment-card";

const command = (part: Partial<EnvironmentCommand>): EnvironmentCommand => ({
  command: "make",
  at: "2026-01-01T00:00:00Z",
  background: false,
  running: false,
  exit_code: 0,
  ...part,
});

const environment = (part: Partial<EnvironmentView>): EnvironmentView => ({
  id: "add-login",
  title: "Add login",
  created_at: "2026-01-01T00:00:00Z",
  state: "running",
  branch: "cofer/add-login",
  image: "alpine",
  worktree: "/r/.cofer/worktrees/add-login",
  container: "cofer-add-login",
  container_id: null,
  ports: [],
  commands: [],
  ...part,
});

function show(part: Partial<EnvironmentView>) {
  const ask = vi.fn();
  const place = { repository: "/r", environment: environment(part) };
  const now = new Date("2026-01-01T01:05:00Z").getTime();
  render(<EnvironmentCard place={place} now={now} onAsk={ask} />);
  return ask;
}

test("a card tells where the work is, how old it is, and which ports answer", () => {
  show({ ports: [{ container: 8080, host: 40123 }] });
  const card = screen.getByRole("article", { name: "Add login" });
  for (const text of ["cofer/add-login", "alpine", "Running", "1h 5m", "8080 → 127.0.0.1:40123"])
    within(card).getByText(text);
});

test("a card shows the isolation in force, and nothing of it while the container is stopped", () => {
  const isolation = {
    no_new_privileges: true,
    memory: 64 * 1024 * 1024,
    mount_flags: { "/workdir": ["nosuid", "nodev"] },
  };
  show({ isolation });
  const card = screen.getByRole("article", { name: "Add login" });
  within(card).getByText("Effective isolation");
  for (const text of ["No new privileges", "64 MiB", "/workdir: nosuid, nodev"]) within(card).getByText(text);
  show({ id: "other", title: "Other" });
  const other = screen.getByRole("article", { name: "Other" });
  expect(within(other).queryByText("Effective isolation")).toBeNull();
});

test("each command says how it ended", () => {
  show({
    commands: [
      command({ command: "a" }),
      command({ command: "b", exit_code: 7 }),
      command({ command: "c", exit_code: null, failure: "timeout" }),
      command({ command: "d", exit_code: null, running: true, background: true }),
      command({ command: "e", exit_code: null, background: true }),
    ],
  });
  const ends = { a: "Exit 0", b: "Exit 7", c: "Timed out", d: "Running", e: "Ended" };
  const lists = screen.getAllByRole("list", { name: /commands of add-login$/ });
  const items = lists.flatMap((list) => within(list).getAllByRole("listitem"));
  expect(items.map((item) => item.querySelector("code")?.textContent)).toEqual(Object.keys(ends));
  for (const [index, word] of Object.values(ends).entries()) within(items[index]!).getByText(word);
});

test("what was never finished can only be destroyed", async () => {
  const ask = show({ state: "unfinished" });
  expect(screen.queryByRole("button", { name: "Show log of add-login" })).toBeNull();
  await userEvent.click(screen.getByRole("button", { name: "Destroy add-login" }));
  expect(ask).toHaveBeenCalledWith(expect.objectContaining({ what: "destroy" }));
});
