// Asks in one way, the argument, and prints what was answered.
const named = (names) => names.map((name) => ({ name, value: name }));
const titled = (names) => names.map((title) => ({ title, value: title }));
const labelled = (names) => names.map((label) => ({ label, value: label }));
const PARTS = ['Auth', 'Storage', 'Mail'];

const libraries = {
  clack: async (kind) => {
    const clack = await import('@clack/prompts');
    return {
      select: () =>
        clack.select({
          message: 'Which template do you want?',
          options: [{ value: 'basic', label: 'Basic', hint: 'usual' }, { value: 'blog', label: 'Blog' }, { value: 'empty', label: 'Empty' }],
        }),
      confirm: () => clack.confirm({ message: 'Install the dependencies?' }),
      multi: () => clack.multiselect({ message: 'Pick your tools', options: labelled(['Linter', 'Tests']) }),
      text: () => clack.text({ message: 'Where should we create your project?', placeholder: './sparkling-solid' }),
      password: () => clack.password({ message: 'Provide a password' }),
    }[kind]();
  },
  inquirer: async (kind) => {
    const asks = await import('@inquirer/prompts');
    return {
      select: () => asks.select({ message: 'Allow the tool to run?', choices: named(['Yes', "Yes, and don't ask again", 'No']) }),
      checkbox: () => asks.checkbox({ message: 'Select the features', choices: named(PARTS) }),
      confirm: () => asks.confirm({ message: 'Delete the branch?' }),
      rawlist: () => asks.rawlist({ message: 'Which part do you want?', choices: named(PARTS) }),
      expand: () =>
        asks.expand({
          message: 'Conflict on file.js',
          default: 'y',
          choices: [{ key: 'y', name: 'Overwrite', value: 'overwrite' }, { key: 'a', name: 'Overwrite all', value: 'all' }, { key: 'd', name: 'Show diff', value: 'diff' }],
        }),
      search: () => asks.search({ message: 'Search a part', source: (words) => named(PARTS).filter((each) => !words || each.name.includes(words)) }),
      input: () => asks.input({ message: 'Enter your name' }),
      password: () => asks.password({ message: 'Enter your password', mask: true }),
    }[kind]();
  },
  legacy: async (kind) => {
    const inquirer = (await import('inquirer-legacy')).default;
    const asked = {
      list: { type: 'list', message: 'What do you want to do?', choices: PARTS },
      rawlist: { type: 'rawlist', message: 'What do you want to do?', choices: PARTS },
      checkbox: { type: 'checkbox', message: 'Select toppings', choices: PARTS },
      confirm: { type: 'confirm', message: 'Is this for delivery?', default: false },
    };
    return (await inquirer.prompt([{ name: 'it', ...asked[kind] }])).it;
  },
  prompts: async (kind) => {
    const prompts = (await import('prompts')).default;
    const asked = {
      select: { type: 'select', message: 'Pick a colour', choices: titled(['Red', 'Blue']) },
      toggle: { type: 'toggle', message: 'Can you confirm?', initial: true, active: 'yes', inactive: 'no' },
      multi: { type: 'multiselect', message: 'Pick colours', choices: titled(['Red', 'Blue']) },
      confirm: { type: 'confirm', message: 'Can you confirm?' },
      text: { type: 'text', message: 'What is your name?' },
      autocomplete: { type: 'autocomplete', message: 'Pick your favourite actor', choices: titled(['Cage', 'Clooney', 'Gyllenhaal']) },
    };
    return (await prompts({ name: 'it', ...asked[kind] })).it;
  },
  enquirer: async (kind) => {
    const enquirer = (await import('enquirer')).default;
    const asked = {
      select: ['Select', { message: 'Pick a flavor', choices: ['apple', 'grape'] }],
      multi: ['MultiSelect', { message: 'Pick your flavors', choices: ['apple', 'grape'] }],
      autocomplete: ['AutoComplete', { message: 'Pick your flavor', choices: ['apple', 'grape', 'cherry'] }],
      confirm: ['Confirm', { message: 'Did you like enquirer?' }],
      toggle: ['Toggle', { message: 'Want to answer?', enabled: 'Yep', disabled: 'Nope' }],
      input: ['Input', { message: 'What is your username?', initial: 'jonschlinkert' }],
      quiz: ['Quiz', { message: 'How many countries are there?', choices: ['165', '175', '195'], correctChoice: 2 }],
    };
    const [Prompt, options] = asked[kind];
    return new enquirer[Prompt]({ name: 'it', ...options }).run();
  },
  ink: async (kind) => {
    const { createElement: h } = await import('react');
    const { render, Box, Text } = await import('ink');
    const Select = (await import('ink-select-input')).default;
    const Input = (await import('ink-text-input')).default;
    const ui = await import('@inkjs/ui');
    return new Promise((resolve) => {
      let app;
      const done = (answer) => { app.unmount(); resolve(answer); };
      const asked = {
        select: () => [h(Text, { key: 1 }, 'Which part do you want?'), h(Select, { key: 2, items: labelled(PARTS), onSelect: (item) => done(item.value) })],
        input: () => [h(Text, { key: 1 }, 'Enter your query: '), h(Input, { key: 2, value: '', onChange: () => {}, onSubmit: done })],
        'ui-select': () => [h(Text, { key: 1 }, 'Which part do you want?'), h(ui.Select, { key: 2, options: labelled(PARTS), onChange: done })],
        'ui-multi': () => [h(Text, { key: 1 }, 'Which parts do you want?'), h(ui.MultiSelect, { key: 2, options: labelled(PARTS), onSubmit: done })],
        'ui-confirm': () => [h(Text, { key: 1 }, 'Do you agree with terms? '), h(ui.ConfirmInput, { key: 2, onConfirm: () => done(true), onCancel: () => done(false) })],
      };
      app = render(h(Box, { flexDirection: kind === 'ui-confirm' ? 'row' : 'column' }, asked[kind]()));
    });
  },
  kit: async (kind) => {
    const term = (await import('terminal-kit')).default.terminal;
    return new Promise((resolve) => {
      const done = (error, answer) => { term.grabInput(false); term('\n'); resolve(answer?.selectedText ?? answer); };
      term.grabInput(true);
      if (kind === 'column') { term('Which part do you want?\n'); term.singleColumnMenu(PARTS, done); }
      else if (kind === 'line') { term('Which part do you want?\n'); term.singleLineMenu(PARTS, done); }
      else if (kind === 'yesno') { term('Do you want to delete it? [Y|n]\n'); term.yesOrNo({ yes: ['y', 'ENTER'], no: ['n'] }, done); }
      else { term('Please enter your name: '); term.inputField({}, done); }
    });
  },
  blessed: async (kind) => {
    const blessed = (await import('blessed')).default;
    const screen = blessed.screen({ smartCSR: true });
    const placed = { parent: screen, top: 'center', left: 'center', width: '50%', border: 'line', keys: true };
    return new Promise((resolve) => {
      const done = (answer) => { screen.destroy(); resolve(answer); };
      if (kind === 'list') {
        const list = blessed.list({ ...placed, height: 8, label: ' Which part do you want? ', items: PARTS, style: { selected: { inverse: true } } });
        list.on('select', (item) => done(item.getText()));
        list.focus();
      } else if (kind === 'question') blessed.question({ ...placed, height: 8 }).ask('Do you want to delete it?', (_, answer) => done(answer));
      else blessed.prompt({ ...placed, height: 8 }).input('What is your name?', '', (_, answer) => done(answer));
      screen.render();
    });
  },
  sync: async (kind) => {
    const sync = (await import('readline-sync')).default;
    if (kind === 'yn') return sync.keyInYN('Do you want this module? ');
    if (kind === 'select') return sync.keyInSelect(PARTS, 'Which part?');
    return sync.question('May I have your name? ');
  },
  cliselect: async () => {
    const select = (await import('cli-select')).default;
    console.log('Which part do you want?');
    return (await select({ values: PARTS })).value;
  },
  topcli: async (kind) => {
    const asks = await import('@topcli/prompts');
    if (kind === 'confirm') return asks.confirm('Do you confirm?');
    if (kind === 'multi') return asks.multiselect('Choose your parts', { choices: PARTS });
    return asks.select('Choose a part', { choices: PARTS });
  },
};
const [library, kind] = process.argv[2].split(' ');
console.log('answered ' + JSON.stringify(await libraries[library](kind)));
process.stdin.resume();
setInterval(() => {}, 1 << 30);
