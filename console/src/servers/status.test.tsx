import { render, screen } from "@testing-library/react";
import { expect, test } from "vitest";
import type { Status } from "../api/schema";
import { en } from "../i18n/en";
import { StatusWord, argvOf, groupOf, isMoving, serverHref } from "./status";
import { serverView } from "../test/server";
import { selectServers } from "./select";

const ALL: Status[] = ["stopped", "starting", "ready", "unresponsive", "restarting", "stopping", "error"];

test.each(ALL)("%s is said in words", (status) => {
  // covers: MGR-27
  render(<StatusWord status={status} />);
  expect(screen.getByText(en.status[status])).toBeTruthy();
});

test("what is on its way is neither connected, stopped nor failed", () => {
  expect(ALL.filter(isMoving)).toEqual(["starting", "restarting", "stopping"]);
  expect(ALL.filter((status) => groupOf(status) === "error")).toEqual(["unresponsive", "error"]);
});

test("a command line is whole, whatever kind of server it is", () => {
  // covers: MGR-59
  expect(argvOf({ command: "npx", image: null, url: null, args: ["-y", "a b"] })).toEqual(["npx", "-y", "a b"]);
  expect(argvOf({ command: null, image: "mcp/time", url: null, args: [] })).toEqual(["mcp/time"]);
  expect(argvOf({ command: null, image: null, url: "http://x", args: [] })).toEqual(["http://x"]);
});

test("any name can stand in an address", () => {
  expect(serverHref("a b%/?#日")).toBe("/servers/a%20b%25%2F%3F%23%E6%97%A5/overview");
});

test("search looks at name, description and command line; what needs a person comes first", () => {
  const servers = [
    serverView({ name: "b", status: "stopped", args: ["/Data"] }),
    serverView({ name: "a10", status: "ready", description: "Files" }),
    serverView({ name: "a9", status: "error" }),
  ];
  const names = (...rest: [string, "all" | "ready" | "error", "name" | "-name" | "status"]) =>
    selectServers(servers, ...rest).map(({ name }) => name);
  expect(names("", "all", "name")).toEqual(["a9", "a10", "b"]);
  expect(names("", "all", "-name")).toEqual(["b", "a10", "a9"]);
  expect(names("", "all", "status")).toEqual(["a9", "a10", "b"]);
  expect(names("npx data", "all", "name")).toEqual(["b"]);
  expect(names("files", "all", "name")).toEqual(["a10"]);
  expect(names("", "error", "name")).toEqual(["a9"]);
});
