import { render, screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { serverView } from "../../test/server";
import { IsolationCard } from "./isolation-card";

test("limits, mounts and who keeps them are told in words", () => {
  const isolation = {
    memory: 268_435_456,
    cpu: 0.5,
    pids: "not enforced",
    network: "egress",
    capabilities: [],
    disk: 1_073_741_824,
    disk_enforced_by: "a watch, which ends it when it has written more",
    mounts: [
      { type: "tmpfs", path: "/tmp", writable: true, size: "67108864" },
      { type: "bind", path: "/host", writable: false, source: "/srv" },
    ],
    something_new: true,
  };
  render(<IsolationCard server={serverView({ kind: "container", isolation })} />);
  const facts = screen.getAllByRole("term").map((term) => `${term.textContent}: ${term.nextSibling?.textContent}`);
  expect(facts).toEqual([
    "Capabilities: None",
    "Network: Outgoing only",
    "Memory limit: 256 MiB",
    "CPU limit: 0.5",
    "Process limit: not enforced",
    "Disk limit: 1 GiB",
    "Disk limit kept by: a watch, which ends it when it has written more",
    "Mounts: /tmp ← tmpfs 64 MiB/host (read-only) ← bind /srv",
    "Something new: yes",
  ]);
});
