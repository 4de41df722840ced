// The whole console: who is allowed in, what is around every page, and which page is shown.
import { CSPProvider } from "@base-ui/react/csp-provider";
import { QueryClientProvider } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { Route, Switch, useLocation } from "wouter";
import { whenUnauthorized } from "./api/client";
import { connection, useConnection } from "./api/connection";
import { goLive } from "./api/live";
import { queryClient } from "./api/queries";
import { readToken } from "./api/token";
import { ServersPage } from "./servers/servers-page";
import { Shell } from "./shell/shell";
import { SignIn } from "./shell/sign-in";
import { ErrorBoundary } from "./ui/error-boundary";
import { lazyPage } from "./ui/lazy-page";
import { NotFound } from "./shell/not-found";

const ServerPage = lazyPage(() => import("./servers/server-page"));
const ActivityPage = lazyPage(() => import("./activity/activity-page"));
const ChatPage = lazyPage(() => import("./chat/chat-page"));
const EnvironmentsPage = lazyPage(() => import("./environments/environments-page"));
const SettingsPage = lazyPage(() => import("./settings/settings-page"));

export function App() {
  return (
    <CSPProvider disableStyleElements>
      <QueryClientProvider client={queryClient}>
        <Gate />
      </QueryClientProvider>
    </CSPProvider>
  );
}

/** Lets in who has a token that the daemon knows. */
function Gate() {
  const [signedIn, setSignedIn] = useState(() => readToken() !== null);
  const state = useConnection();
  useEffect(() => {
    whenUnauthorized(() => connection.set("unauthorized"));
    return signedIn ? goLive() : undefined;
  }, [signedIn]);
  if (signedIn && state !== "unauthorized") return <Pages />;
  const enter = () => {
    connection.set("connecting");
    // Off and on again, so that the stream is opened with the new token.
    setSignedIn(false);
    setTimeout(() => setSignedIn(true));
  };
  return <SignIn onToken={enter} />;
}

function Pages() {
  const [path] = useLocation();
  return (
    <Shell>
      <ErrorBoundary key={pageOf(path)}>
        <Switch>
          <Route path="/" component={ServersPage} />
          <Route path="/servers/:name/:tab?" component={ServerPage} />
          <Route path="/chat/:id?" component={ChatPage} />
          <Route path="/activity" component={ActivityPage} />
          <Route path="/environments" component={EnvironmentsPage} />
          <Route path="/settings" component={SettingsPage} />
          <Route component={NotFound} />
        </Switch>
      </ErrorBoundary>
    </Shell>
  );
}

/** A new conversation gets its address while its page is in use, hence the chat is one page. */
function pageOf(path: string): string {
  return path.startsWith("/chat/") ? "/chat" : path;
}
