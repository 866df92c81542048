// The title and icon of the tab say how many need somebody: "(2) asks: auth-refactor · Now".
import { useEffect } from "react";
import { useAttention } from "../api/queries";
import type { AttentionItem } from "../api/types";
import { needed } from "../live/notices";
import { Store, useStore } from "../live/store";
import { plain } from "../text/marks";

const page = new Store<string>("subagents");

export function useTitle(title: string): void {
  useEffect(() => page.set(title), [title]);
}

/** What can be done without a person, and is therefore not counted. */
export function needsSomebody(item: AttentionItem): boolean {
  return NEEDS.has(item.kind);
}

const NEEDS = new Set(["question", "blocker", "failed", "undelivered", "unread", "quarantined", "limit"]);

/** Keep title and icon right, and say what is new to who does not look. */
export function useTabTitle(): number {
  const found = useAttention().data;
  const items = found?.items.filter(needsSomebody) ?? [];
  const title = useStore(page);
  const first = items.find((each) => each.requestId !== null);
  const what = first === undefined ? "" : `${first.kind === "blocker" ? "blocked" : "asks"}: ${plain(first.label)} · `;
  const words = items.length === 0 ? `${title} · subagents` : `(${items.length}) ${what}${title}`;
  useEffect(() => {
    document.title = words;
  }, [words]);
  useEffect(() => {
    const file = items.length === 0 ? "icon.svg" : `icon-${Math.min(items.length, 10)}.svg`;
    document.querySelector<HTMLLinkElement>("link[rel=icon]")?.setAttribute("href", import.meta.env.BASE_URL + file);
  }, [items.length]);
  useEffect(() => {
    if (found !== undefined) needed(found.items);
  }, [found]);
  return items.length;
}
