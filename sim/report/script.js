
'use strict';
// Without this everything is there, only unfiltered.
for (const filter of document.querySelectorAll('[data-filter]')) {
  const rows = [...document.getElementsByClassName(filter.dataset.filter)];
  const only = filter.querySelector('[data-only]');
  const find = filter.querySelector('[type=search]');
  const told = filter.querySelector('output');
  if (only && !rows.some(row => row.hasAttribute('data-' + only.dataset.only))) continue;
  if (find && rows.length < 2) continue;
  const texts = find ? rows.map(row => row.textContent.toLowerCase()) : [];
  const apply = () => {
    const words = find ? find.value.toLowerCase().split(/\s+/).filter(Boolean) : [];
    let shown = 0;
    rows.forEach((row, i) => {
      row.hidden = (only && only.checked && !row.hasAttribute('data-' + only.dataset.only)) ||
        !words.every(word => texts[i].includes(word));
      shown += row.hidden ? 0 : 1;
    });
    if (told) told.textContent = words.length ? `${shown} of ${rows.length} causes` : '';
  };
  filter.hidden = false;
  filter.addEventListener('input', apply);
}
for (const place of document.getElementsByClassName('command')) {
  const text = place.querySelector('code').textContent;
  const button = document.createElement('button');
  button.type = 'button';
  button.textContent = 'Copy';
  button.setAttribute('aria-label', 'Copy: ' + text.slice(0, 60));
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = 'Copied';
    } catch {
      getSelection().selectAllChildren(place.querySelector('code'));
      button.textContent = 'Selected';
    }
    setTimeout(() => { button.textContent = 'Copy'; }, 1500);
  });
  place.append(button);
}
// "/" goes to the first filter.
addEventListener('keydown', event => {
  const find = document.querySelector('.filter:not([hidden]) input');
  if (event.key !== '/' || event.ctrlKey || event.altKey || event.metaKey || !find) return;
  if (/^(INPUT|TEXTAREA)$/.test(document.activeElement?.tagName)) return;
  event.preventDefault();
  find.focus();
});
// Paper has no way to open what is closed.
const closed = [];
addEventListener('beforeprint', () => {
  for (const cause of document.querySelectorAll('details.cause:not([open])')) {
    cause.open = true;
    closed.push(cause);
  }
});
addEventListener('afterprint', () => { while (closed.length) closed.pop().open = false; });
