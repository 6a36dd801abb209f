package io.idempotence.spring.form;

import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;

/** The page for the sender of a form that was not processed. A bean of this type replaces the standard page. Thread-safe. */
@FunctionalInterface
public interface FormProblemPage {
    /**
     * Writes the page. The status is set already.
     *
     * @param problem what happened
     * @param request the submitted form
     * @param response gets the page
     * @throws IOException if the page cannot be written
     */
    void write(FormProblem problem, HttpServletRequest request, HttpServletResponse response) throws IOException;
}
