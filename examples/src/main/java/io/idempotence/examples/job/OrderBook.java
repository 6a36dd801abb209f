package io.idempotence.examples.job;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.idempotence.IdempotenceId;
import io.idempotence.examples.payments.api.Payment;
import io.idempotence.examples.payments.api.PaymentOrder;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Instant;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The orders of the job and what became of them: one line for each event, in a file that only grows.
 *
 * <pre>
 * due 1 995
 * sends 1 2026-11-21T08:00:00Z 3b0c8f0e-51c5-4a52-8d5b-0f8f4a1c8d11
 * paid 1 17
 * </pre>
 *
 * <p>A line is on the disk when the method that writes it returns. What a crash left of a line that was being written is dropped.
 * One process at a time has the book open. Not thread-safe.
 */
public final class OrderBook implements AutoCloseable {
    private final FileChannel file;
    private final Set<Integer> known = new HashSet<>();
    private final Map<Integer, DueOrder> due = new LinkedHashMap<>();

    private OrderBook(FileChannel file) {
        this.file = file;
    }

    /**
     * Opens a book.
     *
     * @param path its file, which is made if there is none
     * @return the book
     * @throws IllegalStateException if another process has it open
     */
    public static OrderBook open(Path path) {
        try {
            FileChannel file = FileChannel.open(
                    path, StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE);
            try {
                if (file.tryLock() == null) {
                    throw new IllegalStateException("another process has the book open: " + path);
                }
                OrderBook book = new OrderBook(file);
                book.read(new String(Channels.newInputStream(file).readAllBytes(), UTF_8));
                return book;
            } catch (IOException | RuntimeException e) {
                file.close();
                throw e;
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private void read(String text) throws IOException {
        String whole = text.substring(0, text.lastIndexOf('\n') + 1);
        whole.lines().forEach(this::apply);
        file.truncate(whole.getBytes(UTF_8).length);
        file.position(file.size());
    }

    /**
     * Hands in an order.
     *
     * @param order to be paid by the job
     * @throws IllegalArgumentException if an order with its number was handed in before
     */
    public void add(PaymentOrder order) {
        if (known.contains(order.order())) {
            throw new IllegalArgumentException("order " + order.order() + " is in the book");
        }
        write("due " + order.order() + " " + order.cents());
    }

    /** What is not known to be paid, in the order it was handed in. */
    List<DueOrder> due() {
        return List.copyOf(due.values());
    }

    /** Notes that a call for the order is about to be sent under {@code id}. */
    void sends(PaymentOrder order, IdempotenceId id) {
        write("sends " + order.order() + " " + Instant.now() + " " + id.value());
    }

    /** Notes that the order is paid. */
    void paid(PaymentOrder order, Payment payment) {
        write("paid " + order.order() + " " + payment.number());
    }

    private void write(String line) {
        ByteBuffer bytes = UTF_8.encode(line + "\n");
        try {
            while (bytes.hasRemaining()) {
                file.write(bytes);
            }
            file.force(true);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        apply(line);
    }

    private void apply(String line) {
        String[] words = line.split(" ");
        int number = Integer.parseInt(words[1]);
        switch (words[0]) {
            case "due" -> {
                known.add(number);
                due.put(number, new DueOrder(new PaymentOrder(number, Long.parseLong(words[2])), null));
            }
            case "sends" -> {
                DueOrder.Sent sent = new DueOrder.Sent(new IdempotenceId(words[3]), Instant.parse(words[2]));
                due.computeIfPresent(number, (same, order) -> new DueOrder(order.order(), sent));
            }
            case "paid" -> due.remove(number);
            default -> throw new IllegalStateException("not a line of a book of orders: " + line);
        }
    }

    @Override
    public void close() {
        try {
            file.close();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
