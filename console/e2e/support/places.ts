// Where the programs are that the suite drives.
import { resolve } from "node:path";

const root = resolve(import.meta.dirname, "../../..");
const target = process.env.COFER_TEST_TARGET ?? resolve(root, "target/debug");

/** The daemon under test. */
export const COFER = resolve(target, "cofer");
/** An MCP server that misbehaves on order: crates/e2e/src/bin/wayward. */
export const WAYWARD = resolve(target, "wayward");
/** One that does everything the conformance suites ask for: crates/e2e/src/bin/exemplary. */
export const EXEMPLARY = resolve(target, "exemplary");
export const CHROMIUM = process.env.COFER_TEST_CHROMIUM || "/usr/bin/chromium";
/** npm's published MCP servers, as scripts/setup-tests installs them. */
export const NPM = process.env.COFER_TEST_NPM ?? resolve(root, ".cofer-test/npm");
export const EVERYTHING = resolve(NPM, "node_modules/.bin/mcp-server-everything");
/** Podman's settings, by which it has the test images. */
export const CONTAINERS = process.env.CONTAINERS_CONF ?? "the variable CONTAINERS_CONF";
/** Wayward in an image, as scripts/setup-containers makes it. */
export const WAYWARD_IMAGE = "localhost/cofer-test/wayward";
/** Pictures of pages on which a test failed. */
export const FAILURES = resolve(root, ".cofer-test/console-failures");
