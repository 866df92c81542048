// What stands in the address behind its path: a link shows what its sender saw.
import { useSearchParams } from "wouter";
import { useBrowserLocation, useSearch as useBrowserSearch } from "wouter/use-browser-location";

// The router resolves some escapes of what it is given, and what takes it apart resolves all of them: "%41" that is
// looked for would become an "A". So it is given each escape escaped once more.
const escaped = (text: string) => text.replaceAll("%", "%25");

export const useSearch = () => escaped(useBrowserSearch());

export function usePath(): ReturnType<typeof useBrowserLocation> {
  const [path, navigate] = useBrowserLocation();
  return [escaped(path), navigate];
}

/** A part of a path, as it was before it was escaped. */
export function partOf(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path; // typed by hand
  }
}

/** Read a name of it, `""` = it is not there; and put one, in place of the address that is shown. */
export function useAddress(): [(name: string) => string, (name: string, value: string) => void, URLSearchParams] {
  const [search, setSearch] = useSearchParams();
  const put = (name: string, value: string) => {
    const next = (before: URLSearchParams) => (value === "" ? before.delete(name) : before.set(name, value), before);
    setSearch(next, { replace: true });
  };
  return [(name) => search.get(name) ?? "", put, search];
}
