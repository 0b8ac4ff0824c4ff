import java.io.*;
import java.util.*;

public class Busy {
	static final class Account {
		final String name;
		long balance;
		Account(String name, long balance) { this.name = name; this.balance = balance; }
		long interest(long rate) { return balance += balance * rate / 100; }
	}

	static long work(long n) {
		List<Account> accounts = new ArrayList<>();
		for (int i = 0; i < 600; i++)
			accounts.add(new Account("user" + i * n % 97 + "@host" + i % 7 + ".org", i * 31 % 101));
		accounts.sort(Comparator.<Account>comparingLong(a -> a.balance).thenComparing(a -> a.name));
		Map<String, Long> totals = new TreeMap<>();
		for (Account a : accounts)
			totals.merge(a.name.substring(a.name.indexOf('@')), a.interest(n % 5), Long::sum);
		long sum = 0;
		for (Map.Entry<String, Long> e : totals.entrySet())
			sum = sum * 31 + e.getKey().hashCode() + e.getValue();
		return sum;
	}

	public static void main(String[] args) throws IOException {
		BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
		for (String line; (line = in.readLine()) != null; ) {
			System.out.print(work(Long.parseLong(line)) + "\n");
			System.out.flush();
		}
	}
}
