// Phones simulated by this page: each draws a row, randomises it with the same client and sends one report.
import { Phone } from "./phone.js";
import { somebody } from "./found.js";

const AT_ONCE = 4;

onmessage = async ({ data: { numbers, facts } }) => {
  const phone = await Phone.open(location.origin, { forgets: true });
  let next = 0, sent = 0;
  const phones = async () => {
    while (next < numbers.length) {
      const number = numbers[next++];
      await phone.report(somebody(facts, phone.shape), number);
      postMessage({ sent: ++sent });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, phones));
};
