// What is around every page: navigation, header, the banner for when the daemon is away, dialogs.
import { Activity, Boxes, MessageSquare, Server, Settings } from "lucide-react";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { Link, useLocation } from "wouter";
import { Notices } from "../ui/notices";
import { AwayBanner } from "./away-banner";
import { Dialogs } from "./dialogs";
import { Header } from "./header";
import { LiveRegion } from "./live-region";
import { useShortcuts } from "./shortcuts";

const PLACES = [
  { href: "/", key: "app.servers", icon: Server, under: "/servers" },
  { href: "/chat", key: "app.chat", icon: MessageSquare, under: "/chat" },
  { href: "/activity", key: "app.activity", icon: Activity, under: "/activity" },
  { href: "/environments", key: "app.environments", icon: Boxes, under: "/environments" },
  { href: "/settings", key: "app.settings", icon: Settings, under: "/settings" },
] as const;

export function Shell({ children }: { children: ReactNode }) {
  const { t } = useTranslation();
  useShortcuts();
  return (
    <div className="min-h-dvh md:pl-52">
      <a href="#content" className="btn fixed top-2 left-2 z-70 -translate-y-16 focus:translate-y-0">
        {t("app.skip")}
      </a>
      <Navigation />
      <Header />
      <main id="content" tabIndex={-1} className="mx-auto max-w-6xl px-4 pt-5 pb-24 outline-none md:px-8 md:pb-12">
        <AwayBanner />
        {children}
      </main>
      <LiveRegion />
      <Dialogs />
      <Notices />
    </div>
  );
}

/** At the left; at the bottom where the screen is narrow. */
function Navigation() {
  const { t } = useTranslation();
  const [path] = useLocation();
  return (
    <nav
      aria-label={t("app.main")}
      className="fixed inset-x-0 bottom-0 z-30 flex border-t border-line bg-surface md:inset-y-0 md:right-auto md:w-52 md:flex-col md:gap-0.5 md:border-t-0 md:border-r md:p-3"
    >
      <Link
        href="/"
        className="hidden items-center gap-2 px-2 pt-1 pb-4 text-lg font-semibold tracking-tight md:flex"
        aria-hidden
        tabIndex={-1}
      >
        <img src="/icon.svg" alt="" width={24} height={24} />
        {t("app.name")}
      </Link>
      {PLACES.map(({ href, key, icon: Icon, under }) => {
        const here = path === href || path.startsWith(`${under}/`);
        return (
          <Link
            key={href}
            href={href}
            aria-current={here ? "page" : undefined}
            className={`flex flex-auto flex-col items-center gap-0.5 px-0.5 py-2 text-[0.6875rem] font-medium whitespace-nowrap md:flex-none md:flex-row md:gap-2.5 md:rounded-lg md:px-2 md:text-base ${here ? "text-accent md:bg-accent-soft" : "text-soft hover:text-ink md:hover:bg-hover"}`}
          >
            <Icon size={18} aria-hidden />
            {t(key)}
          </Link>
        );
      })}
    </nav>
  );
}
