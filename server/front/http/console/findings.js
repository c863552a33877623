// What is wrong, as the banner shows it. Pure functions of the server's answers.

const kRefusedShown = 5;

// Why this server refuses calls, most urgent first. `firn doctor` shows the same from its report.
export function troublesOf(status) {
  const refused = status.refused_tags.filter(({state}) => state !== 'disabled');
  const disabled = status.refused_tags.length - refused.length;
  const more = status.refused_tags_count - disabled - kRefusedShown;
  return [status.trouble,
          ...refused.slice(0, kRefusedShown).map(
              ({tag, state, why}) => `refuses tag ${tag} (${state}): ${why}`),
          more > 0 ? `refuses ${more} more tags` : undefined].filter((text) => text);
}

// The banner: its urgency, its sentence, and the finding's fix. `status` and `audit` are null until
// they are read; `unread` says why the cluster cannot be read. `missing`: servers that left the
// list while the page was open.
export function bannerOf({status, audit, unread, missing}) {
  const troubles = status === null ? [] : troublesOf(status);
  const own = troubles.length > 0 ? {urgency: 'refused', what: `This server: ${troubles[0]}`} : null;
  if (audit === null) {
    if (own) return own;
    if (unread && status?.cluster_name.startsWith('static:')) {
      return {urgency: 'note', what: `This server is ${status.state}. The cluster is not shown: ${unread}`};
    }
    if (unread) return {urgency: 'soon', what: `The cluster cannot be read: ${unread}`};
    return {urgency: 'unknown', what: 'The cluster is being read.'};
  }
  if (audit.trouble) return {urgency: 'refused', what: `The registry cannot be read: ${audit.trouble}`};
  const [first] = audit.findings;
  if (first !== undefined && first.urgency !== 'note') return first;
  if (own) return own;
  if (first !== undefined) return first;
  if (missing > 0) {
    return {urgency: 'note', what: `${missing === 1 ? '1 server has' : `${missing} servers have`}` +
        ' left the list since this page was opened'};
  }
  return {urgency: 'good', what: 'Nothing is wrong.'};
}

// The lines below the banner's sentence.
export function linesOf({status, audit}) {
  const first = audit === null || audit.trouble ? 0 : 1;
  const findings = audit === null ? [] : audit.findings.slice(first);
  // The findings contain this server's report, soon after it has changed.
  const reported = audit !== null && !audit.trouble && audit.findings.some(({urgency}) => urgency !== 'note');
  const own = status === null || reported ? [] : troublesOf(status).map(
      (what) => ({urgency: 'refused', what: `This server: ${what}`}));
  const shown = bannerOf({status, audit, unread: '', missing: 0}).what;
  return [...findings, ...own].filter(({what}) => what !== shown);
}
