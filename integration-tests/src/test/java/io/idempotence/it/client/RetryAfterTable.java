package io.idempotence.it.client;

import com.github.tomakehurst.wiremock.client.ResponseDefinitionBuilder;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.List;
import java.util.stream.Stream;

/** The values of {@code Retry-After} and {@code Retry-After-Ms} that may come with a retryable status, the same for every HTTP client. */
final class RetryAfterTable {
    static final List<Integer> STATUSES = List.of(408, 425, 429, 500, 502, 503, 504);

    /** Two that HTTP clients repeat by themselves, and one that leaves a doubt. */
    static final List<Integer> SOME_STATUSES = List.of(408, 503, 504);

    /** More seconds than fit into any number. */
    static final String ABSURD = "99999999999999999999";

    private static final String SECONDS = "Retry-After";
    private static final String MILLIS = "Retry-After-Ms";

    private RetryAfterTable() {}

    record Row(String header, String value) {
        ResponseDefinitionBuilder beside(int status) {
            return WireMockTestBase.status(status).withHeader(header, value);
        }
    }

    /** Values that ask for a retry at once, or that have no meaning. */
    static Stream<Row> soon() {
        ZonedDateTime now = ZonedDateTime.now(ZoneOffset.UTC);
        return Stream.of(
                new Row(SECONDS, "0"),
                new Row(SECONDS, "-1"),
                new Row(SECONDS, "1.5"),
                new Row(SECONDS, date(now.minusYears(1))),
                new Row(SECONDS, date(now)),
                new Row(MILLIS, "0"),
                new Row(MILLIS, "7"),
                new Row(MILLIS, "-7"),
                new Row(MILLIS, ""));
    }

    /** After every deadline. */
    static Stream<Row> tooLate() {
        ZonedDateTime now = ZonedDateTime.now(ZoneOffset.UTC);
        return Stream.of(
                new Row(SECONDS, "3600"),
                new Row(SECONDS, date(now.plusHours(1))),
                new Row(SECONDS, date(now.withYear(9999))),
                new Row(MILLIS, ABSURD));
    }

    /** As HTTP writes it. */
    static String date(ZonedDateTime time) {
        return DateTimeFormatter.RFC_1123_DATE_TIME.format(time);
    }
}
