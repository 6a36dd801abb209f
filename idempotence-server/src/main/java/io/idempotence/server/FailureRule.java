package io.idempotence.server;

/** Which failures keep an ID and which release it. Success, any status under 400, is always kept. */
public enum FailureRule {
    /**
     * The default. A business failure (4xx) is kept: running again would fail again. A system failure (uncaught exception, 5xx,
     * 408, 425, 429) is released: running again may succeed. Choose another rule where a handler can fail after it took effect.
     */
    RELEASE_ON_SYSTEM_FAILURE {
        @Override
        Verdict ofStatus(int status) {
            boolean systemFailure = status >= 500 || status == 408 || status == 425 || status == 429;
            return systemFailure ? Verdict.RELEASE : Verdict.KEEP;
        }

        @Override
        Verdict ofException() {
            return Verdict.RELEASE;
        }
    },

    /** Every answer is kept, a 500 too: an ID runs at most once, whatever happens. */
    STORE_EVERYTHING {
        @Override
        Verdict ofStatus(int status) {
            return Verdict.KEEP;
        }

        @Override
        Verdict ofException() {
            return Verdict.KEEP;
        }
    },

    /** Only success is kept: a 4xx is released too. */
    STORE_SUCCESS_ONLY {
        @Override
        Verdict ofStatus(int status) {
            return status < 400 ? Verdict.KEEP : Verdict.RELEASE;
        }

        @Override
        Verdict ofException() {
            return Verdict.RELEASE;
        }
    };

    abstract Verdict ofStatus(int status);

    abstract Verdict ofException();
}
