// Where the parts of a page stand, what overlaps, and what is wider than its place.
() => {
  const box = (one) => one.getBoundingClientRect();
  const across = (all) => new Set(all.map((one) => Math.round(box(one).left))).size;
  const every = (query) => [...document.querySelectorAll(query)];
  const first = (query) => document.querySelector(query);
  const columns = (one) => getComputedStyle(one).gridTemplateColumns.split(' ').length;
  const overlaps = [];
  for (const parent of every('main section, .cards, .card, .cells, .rows, .case, .eye, .grid, nav')) {
    const inside = [...parent.children].filter((one) => box(one).height && box(one).width);
    for (let n = 0; n + 1 < inside.length; n++) {
      const [a, b] = [box(inside[n]), box(inside[n + 1])];
      if (getComputedStyle(inside[n]).display.startsWith('inline')) continue;
      if (a.bottom > b.top + 1 && a.right > b.left + 1 && b.right > a.left + 1 && b.bottom > a.top + 1)
        overlaps.push(parent.tagName + '.' + parent.className + ': ' + inside[n].outerHTML.slice(0, 80));
    }
  }
  const cut = every('main *').filter((one) => {
    const style = getComputedStyle(one);
    return style.display !== 'inline' && style.overflowX !== 'auto' && !one.closest('svg, .scroll, select')
      && one.clientWidth && one.scrollWidth > one.clientWidth + 1;
  }).map((one) => one.outerHTML.slice(0, 80));
  return {
    cards: across(every('.card')), metric: columns(first('.metric')), eye: columns(first('.eye')),
    grid: columns(first('.grid li')), order: every('main > section').map((one) => one.id),
    tops: every('main > section').map((one) => box(one).top), overlaps, cut,
    answer: box(first('.answer')).bottom, wide: document.documentElement.scrollWidth,
    centred: Math.round(box(first('main')).left - (innerWidth - box(first('main')).right)),
  };
}
