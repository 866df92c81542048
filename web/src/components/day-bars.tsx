// Dollars by day as bars, with the number of attempts below that nobody told the cost of.
import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { preferences } from "../live/preferences";
import { useStore } from "../live/store";
import { counted, dollars } from "../text/amounts";

type Day = { at: string; usd: number | null; unknown: number };

const HEIGHT = 180;
const AXIS_PX = 56;
/** Room for a day below its bar. */
const LABEL_PX = 22;

export function DayBars({ days }: { days: readonly Day[] }) {
  const box = useRef<HTMLDivElement>(null);
  const { theme } = useStore(preferences);
  useEffect(() => {
    const place = box.current;
    if (place === null) return undefined;
    const chart = new uPlot(optionsFor(place, days), [days.map((_, at) => at), days.map((each) => each.usd)], place);
    const watcher = new ResizeObserver(() => chart.setSize({ width: place.clientWidth, height: HEIGHT }));
    watcher.observe(place);
    return () => {
      watcher.disconnect();
      chart.destroy();
    };
  }, [days, theme]);
  const unknown = days.filter((each) => each.unknown > 0);
  return (
    <div className="body">
      <div ref={box} className="chart" role="img" aria-label={wordsOf(days)} />
      {unknown.length > 0 && (
        <p className="note">
          Not reported: {unknown.map((each) => `${dayOf(each.at)}: ${each.unknown}`).join(", ")}. The bars of these days are too low by an
          unknown amount.
        </p>
      )}
    </div>
  );
}

function optionsFor(place: HTMLElement, days: readonly Day[]): uPlot.Options {
  // A canvas knows no custom properties; what they are now is read here.
  const style = getComputedStyle(place);
  const color = (name: string) => {
    const probe = document.createElement("i");
    probe.className = name;
    place.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  };
  const axis = { stroke: color("probe-ink"), grid: { stroke: color("probe-line"), width: 1 }, ticks: { show: false }, font: `12px ${style.fontFamily}` };
  const every = Math.ceil((days.length * LABEL_PX) / Math.max(place.clientWidth - AXIS_PX, 1));
  return {
    width: place.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    scales: { x: { time: false, range: [-0.6, days.length - 0.4] }, y: { range: (_, __, most) => [0, Math.max(most ?? 0, 0.01) * 1.1] } },
    axes: [
      { ...axis, grid: { show: false }, splits: days.map((_, at) => at).filter((at) => (days.length - 1 - at) % every === 0), values: (_, at) => at.map((each) => dayOf(days[each]?.at ?? "")) },
      { ...axis, size: AXIS_PX, values: (_, at) => at.map((each) => dollars(each)) },
    ],
    series: [
      {},
      {
        fill: color("probe-bar"),
        width: 0,
        points: { show: false },
        ...(uPlot.paths.bars === undefined ? {} : { paths: uPlot.paths.bars({ size: [0.6, 60] }) }),
      },
    ],
  };
}

function dayOf(at: string): string {
  return at.slice(8, 10).replace(/^0/, "");
}

function wordsOf(days: readonly Day[]): string {
  const known = days.filter((each) => each.usd !== null);
  const most = [...known].sort((a, b) => (b.usd ?? 0) - (a.usd ?? 0))[0];
  if (most === undefined) return `no cost was reported in ${counted(days.length, "day")}`;
  return `dollars by day over ${counted(days.length, "day")}; most on ${most.at.slice(0, 10)}: ${dollars(most.usd ?? 0)}`;
}
