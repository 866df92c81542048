// What is around every page: where one can go, how many need somebody, whether what one sees is so.
import { useEffect, useState, type ReactNode } from "react";
import { Link, useLocation } from "wouter";
import { role, seesAll } from "../api/login";
import { useAttention, useVersion } from "../api/queries";
import { useKeys } from "../live/keys";
import { canNotify, notifyMe, peeked, WARN_PERCENT } from "../live/notices";
import { prefer, preferences, switchTheme } from "../live/preferences";
import { useStore } from "../live/store";
import { counted } from "../text/amounts";
import { ForOperators } from "./act";
import { Patterns } from "./bars";
import { Boundary } from "./boundary";
import { openDialog } from "./dialogs";
import { HEADING_ID } from "./heading";
import { LinkDot, LostBar } from "./link-state";
import { PAGES } from "./routes";
import { ShapeMark } from "./shape";
import { useTabTitle } from "./title";
import { Took } from "./when";

const pagesHere = () => PAGES.filter(({ isClosed }) => !isClosed || seesAll());
const ON_PHONES = ["Now", "Runs", "Inbox"];

export function Shell({ children }: { children: ReactNode }) {
  const [path, navigate] = useLocation();
  const [isMenuOpen, setMenuOpen] = useState(false);
  const needs = useTabTitle();
  const asked = useAttention().data?.requests ?? [];
  const answerHere = () => peeked.set(asked[0] ?? null);
  const version = useVersion().data;
  const [own, setOwn] = useState<string>();
  if (own === undefined && version !== undefined) setOwn(version.version);
  const { absoluteTimes, notifies } = useStore(preferences);
  const may = useStore(role);
  useKeys({
    ...Object.fromEntries(pagesHere().map((page) => [`g ${page.key}`, () => navigate(page.path)])),
    "?": () => openDialog("keys"),
    "Ctrl k": () => openDialog("palette"),
    c: () => navigate("/new"),
    a: answerHere,
    T: () => prefer({ absoluteTimes: !preferences.get().absoluteTimes }),
    "\\": switchTheme,
    u: () => history.back(),
    q: () => nextNeed(path, navigate),
  });
  useEffect(() => setMenuOpen(false), [path]);
  const isAt = (page: string) => (page === "/" ? path === "/" : path === page || path.startsWith(`${page}/`));
  const place = (name: string, at: string) => (
    <Link href={at} aria-current={isAt(at) ? "page" : undefined}>
      <span>{name}</span>
      {name === "Now" && needs > 0 && <b className="need">{needs}</b>}
    </Link>
  );
  return (
    <div className="shell">
      <Patterns />
      <a className="skip" href="#main" onClick={(event) => (event.preventDefault(), document.getElementById("main")?.focus())}>
        Skip to the page
      </a>
      <nav className={isMenuOpen ? "side open" : "side"} aria-label="pages">
        <strong className="brand">subagents</strong>
        <ul>
          {pagesHere().map((page) => (
            <li key={page.path} className={page.name === "Agents" ? "apart" : ""}>
              {place(page.name, page.path)}
            </li>
          ))}
        </ul>
        <footer className="note">
          {version && (
            <>
              daemon {version.version}
              {own !== version.version && <>, this page is of {own}: <a href="">load it again</a></>}
              <br />
              up <Took from={version.startedAt} to={null} />
              <br />
            </>
          )}
          {may === "viewer" && <p>You are a viewer: you may look.</p>}
          {canNotify && (
            <label className="check">
              <input type="checkbox" checked={notifies} onChange={(event) => void notifyMe(event.target.checked)} />
              notify me of questions, a plan’s first failure, a budget at {WARN_PERCENT} %
            </label>
          )}
          <button type="button" className="plain" onClick={() => openDialog("keys")}>keys <kbd>?</kbd></button>
        </footer>
      </nav>
      <div className="column">
        <header className="bar">
          <button
            type="button"
            className="menu"
            aria-label="pages"
            aria-expanded={isMenuOpen}
            onClick={() => setMenuOpen(!isMenuOpen)}
          >
            ☰
          </button>
          <div id={HEADING_ID} className="heading" />
          <button type="button" className="find" onClick={() => openDialog("palette")}>
            <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
              <circle cx="7" cy="7" r="4.6" fill="none" stroke="currentColor" strokeWidth="1.6" />
              <path d="M10.4 10.4 14 14" fill="none" stroke="currentColor" strokeWidth="1.6" strokeLinecap="round" />
            </svg>
            <span>{may === "viewer" ? "Find" : "Find, or start a task"}</span> <kbd>Ctrl K</kbd>
          </button>
          {asked.length > 0 && path !== "/" && (
            <button type="button" className="plain need" title="answer it here (a)" aria-label={counted(asked.length, "question")} onClick={answerHere}>
              <ShapeMark shape="bubble" /> {asked.length} <span>{asked.length === 1 ? "question" : "questions"}</span>
            </button>
          )}
          <ForOperators>
            <Link href="/new" className="button new">New run <kbd>c</kbd></Link>
          </ForOperators>
          <LinkDot />
          <button
            type="button"
            className="plain absolute"
            aria-pressed={absoluteTimes}
            title="absolute times (T)"
            onClick={() => prefer({ absoluteTimes: !absoluteTimes })}
          >
            <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
              <circle cx="8" cy="8" r="6.2" fill="none" stroke="currentColor" strokeWidth="1.4" />
              <path d="M8 4.5v3.7l2.4 1.5" fill="none" stroke="currentColor" strokeWidth="1.4" strokeLinecap="round" />
            </svg>
            <span className="visually-hidden">absolute times</span>
          </button>
          <button type="button" className="plain" title="light or dark (\)" onClick={switchTheme}>
            <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
              <circle cx="8" cy="8" r="6.2" fill="none" stroke="currentColor" strokeWidth="1.4" />
              <path d="M8 1.8a6.2 6.2 0 0 1 0 12.4z" fill="currentColor" />
            </svg>
            <span className="visually-hidden">light or dark</span>
          </button>
        </header>
        <LostBar />
        <main id="main" tabIndex={-1}>
          <Boundary key={path.split("/", 3).join("/")}>{children}</Boundary>
        </main>
      </div>
      <nav className="bottom" aria-label="pages on small screens">
        {PAGES.filter((page) => ON_PHONES.includes(page.name)).map((page) => (
          <span key={page.path}>{place(page.name, page.path)}</span>
        ))}
        <button type="button" aria-expanded={isMenuOpen} onClick={() => setMenuOpen(!isMenuOpen)}>More</button>
      </nav>
    </div>
  );
}

/** To the next question on the page; from elsewhere, home to them. */
function nextNeed(path: string, navigate: (to: string) => void): void {
  const all = [...document.querySelectorAll<HTMLElement>(".question")];
  if (path !== "/" || all.length === 0) return navigate("/");
  const at = all.findIndex((each) => each.contains(document.activeElement));
  const next = all[(at + 1) % all.length];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}
